"""Forward passes that leave the model, its gradients and the random states unchanged."""

from __future__ import annotations

import collections
import copy
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.compiled import hold_eager, release_eager
from fmapboard.capture.isolation import block_ended, blocks
from fmapboard.capture.transfer import pinned_memory
from fmapboard.errors import WarnOnce
from fmapboard.interrupts import interrupt_in
from fmapboard.model.distributed import is_sharded
from fmapboard.model.flattened import are_flattened
from fmapboard.model.layers import WatchedLayers, clean_name, unwrap
from fmapboard.model.tensors import map_tensors, tensors

_KEPT_BY_TORCH = frozenset(vars(nn.Module())) - {"_non_persistent_buffers_set"}
_NOT_RESTORED = _KEPT_BY_TORCH | {"_compiled_call_impl", "forward"}
"""Attributes of a module that are restored in another way, or not at all."""

_CONTAINERS = (list, dict, set, collections.OrderedDict, collections.deque)


class untouched:  # lower case: a context manager that is used like a function
    """Restore what the model's modules hold, and the random states, after the block.

    The random states are those of Python, NumPy, and torch on the CPU and on the model's devices.
    Nothing here waits for a device: the states of its generators are kept on the host. Buffers are
    exchanged for copies inside the block: a change of their versions would make the user's backward
    pass raise. Weights that are cast inside the block stay out of the user's autocast cache: up to
    torch 2.7, a cast made without a graph would be reused there, and the weight would get no
    gradient. Compiled code runs uncompiled inside the block, so that hooks are called.

    Args:
        model: any module.
        training: the mode inside the block; None keeps each module's own. It is set and restored
            per module, without ``train()``, so a BatchNorm that the user froze is still frozen
            afterwards.
        attributes: restore not only modes and buffers, but everything except parameters and hooks.
        parameters: what to put back into these parameters, also if they were changed through
            ``.data``.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        training: bool | None = None,
        attributes: bool = False,
        parameters: Sequence[tuple[nn.Parameter, Tensor]] = (),
    ) -> None:
        self._model, self._training, self._attributes = model, training, attributes
        self._parameters = parameters
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        states = [_State(module, self._attributes) for module in self._model.modules()]
        generators = generators_of(self._model)
        self._restore = [
            *(state.restore for state in states),
            *(partial(p.data.copy_, before) for p, before in self._parameters),
            partial(random.setstate, random.getstate()),
            partial(np.random.set_state, np.random.get_state()),
            partial(set_random_states, random_states(generators), generators),
            partial(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled()),
            partial(release_eager, self),
        ]
        blocks.open.append(self)
        hold_eager(self)
        torch.set_autocast_cache_enabled(False)
        copies: dict[int, Tensor] = {}
        with torch.inference_mode(False):  # copies that may be part of a graph
            for state in states:
                state.exchange(copies)
                if self._training is not None:
                    state.module.training = self._training

    def __exit__(self, *error: object) -> None:
        for restore in self._restore:
            restore()
        self._restore = []
        block_ended(self)


class _State:
    """What a module holds: its mode, its buffers and, if asked for, its other attributes."""

    def __init__(self, module: nn.Module, attributes: bool) -> None:
        self.module, self._mode, self._attributes = module, module.training, attributes
        slots: list[Any] = [module._buffers, vars(module)] if attributes else [module._buffers]
        self._held = [(slot, _values(slot)) for slot in slots]
        values = self._held[1][1].values() if attributes else ()
        self._contents = [(v, copy.copy(v)) for v in values if type(v) in _CONTAINERS]

    def exchange(self, copies: dict[int, Tensor]) -> None:
        """Put copies in place of tensors; one that occurs twice has one copy."""
        for slot, held in self._held:
            for name, value in held.items():
                if isinstance(value, Tensor) and not is_lazy(value):  # that has no values yet
                    if id(value) not in copies:
                        copies[id(value)] = value.detach().clone()
                    slot[name] = copies[id(value)]

    def restore(self) -> None:
        """Put everything back."""
        self.module.training = self._mode
        for slot, held in self._held:
            if self._attributes:
                for name in _values(slot).keys() - held.keys():
                    del slot[name]
            for name, value in held.items():
                slot[name] = value
        for container, before in self._contents:
            container.clear()
            put = container.extend if hasattr(container, "extend") else container.update
            put(before)


def _values(slot: Any) -> dict[str, Any]:
    """A module's buffers or attributes, by name, except for parameters, hooks and submodules."""
    return {name: value for name, value in dict(slot).items() if name not in _NOT_RESTORED}


Generator = tuple[str, int]
"""A generator of random numbers of torch: type and index of its device."""

RandomStates = Mapping[Generator, Tensor]


def generators_of(model: nn.Module) -> list[Generator]:
    """The generators that a model may draw from: the CPU's, and those of its devices."""
    places = {(p.device.type, p.device.index or 0) for p in model.parameters()}
    others = [place for place in places if hasattr(getattr(torch, place[0], None), "get_rng_state")]
    return [("cpu", 0), *others]


def random_states(generators: Iterable[Generator]) -> RandomStates:
    """The states of generators at this moment."""
    return {
        (kind, index): torch.get_rng_state()
        if kind == "cpu"
        else torch.get_device_module(kind).get_rng_state(index)
        for kind, index in generators
    }


def set_random_states(states: RandomStates, generators: Iterable[Generator]) -> None:
    """Set the states of those of the generators whose states are given."""
    for kind, index in states.keys() & set(generators):
        state = states[kind, index]
        if kind == "cpu":
            torch.set_rng_state(state)
        else:
            torch.get_device_module(kind).set_rng_state(state, index)


class Probe:
    """Images for side passes, kept on the model's device.

    Args:
        images: what ``forward`` takes: a tensor, or a tuple of positional arguments.
    """

    def __init__(self, images: Any) -> None:
        self.images = images
        self._moved: Any = None
        self._place: tuple[torch.device, torch.dtype] | None = None

    def arguments(self, model: nn.Module) -> tuple[Any, ...]:
        """Copies of the positional arguments of ``forward``, which the model may change in place.

        The images are moved to the model's device once, and again only if its device or dtype
        changes.

        Args:
            model: floating-point tensors get the device and dtype of its first floating-point
                parameter, other tensors its device.
        """
        like = _like(model)
        if self._place != (like.device, like.dtype):
            images = self.images if isinstance(self.images, tuple) else (self.images,)
            self._moved = map_tensors(images, lambda tensor: _moved(tensor, like))
            self._place = like.device, like.dtype
        copied: tuple[Any, ...] = map_tensors(self._moved, torch.clone)
        return copied


def run_side_pass(model: nn.Module, probe: Any, loss: Callable[[Any], Tensor] | None = None) -> Any:
    """Run the unwrapped model on the probe in eval mode, without autocast.

    Args:
        model: any module. Under DistributedDataParallel the inner module runs, so no rank waits for
            another.
        probe: a ``Probe``, or its images. Floating-point tensors are moved to the device and dtype
            of the model's first floating-point parameter, other tensors to its device.
        loss: a function of what ``forward`` returned. Its gradient is taken with respect to the
            images, so no parameter gets one, and neither the hooks of optimizers nor those of
            DistributedDataParallel run. None computes no gradients.

    Returns:
        What ``forward`` returned.
    """
    inner = unwrap(model)
    kept = probe if isinstance(probe, Probe) else Probe(probe)
    leaves: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaves.append(tensor.requires_grad_())
        return tensor.clone()  # the first layer may overwrite its input

    with (
        untouched(inner, training=False),
        torch.inference_mode(False),
        torch.set_grad_enabled(loss is not None),
        torch.autocast(_like(inner).device.type, enabled=False, cache_enabled=False),
    ):
        arguments = kept.arguments(inner)
        if loss is None:
            return inner(*arguments)
        output = inner(*map_tensors(arguments, leaf))
        torch.autograd.grad(loss(output), leaves, allow_unused=True)
        return output


def _like(model: nn.Module) -> Tensor:
    """A tensor of the device and dtype that the model's input should have."""
    return next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))


def _moved(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor on another device, through pinned memory if there is any."""
    dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
    tensor = tensor.detach()
    if like.is_cpu or not tensor.is_cpu:
        return tensor.to(like.device, dtype)
    try:
        staged = pinned_memory(tensor.shape, dtype)
    except RuntimeError as error:
        if interrupt_in(error) is not None:
            raise
        return tensor.to(like.device, dtype)
    return staged.copy_(tensor).to(like.device, non_blocking=True)


NOT_NEUTRAL = "logged steps then run uncompiled, and training is not bitwise the same"
"""What to say of the option ``compiled="eager"``."""


class EagerPass:
    """Runs an uncompiled pass of a compiled model, if that does not change the training.

    It runs right before the compiled pass, on copies of what the model is called with: each module
    in its own mode, under the caller's autocast, without gradients. Random states, buffers and the
    attributes of all modules are then as before, so training is bitwise the same. Around the first
    pass, a copy of the parameters is kept and put back.

    Args:
        watched: the watched layers of the model.
        warn: where the reason is reported, once, if there are no such passes.

    Attributes:
        was_left_out: True if the last pass was not possible.
    """

    def __init__(self, watched: WatchedLayers, warn: WarnOnce) -> None:
        self._model, self._warn = watched.model, warn
        self._obstacle, self._is_checked, self.was_left_out = "", False, False

    def can_run(self) -> bool:
        """True if a pass is possible now."""
        self._obstacle = self._obstacle or _obstacle(self._model)
        if self._obstacle:
            self._refuse()
        # The user's own pass gives lazy parameters their values.
        self.was_left_out = bool(self._obstacle) or any(map(is_lazy, self._model.parameters()))
        return not self.was_left_out

    def run(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Run the pass.

        Args:
            module: what is called: the model, a part of it, or what torch.compile made of it.
            args: what it is called with.
            kwargs: likewise.
        """
        inner = unwrap(module)
        parameters = [(name, p) for name, p in inner.named_parameters() if not p.is_inference()]
        versions = [p._version for _, p in parameters]
        kept = [] if self._is_checked else [(p, p.detach().clone()) for _, p in parameters]
        self._is_checked = True
        try:
            with untouched(inner, attributes=True, parameters=kept), torch.no_grad():
                try:
                    own_args, own_kwargs = copied_values((args, kwargs))
                except Exception:  # something that cannot be copied
                    own_args, own_kwargs = map_tensors((args, kwargs), detached_copy)
                call: Any = inner._call_impl  # not what `inner.compile()` has made
                call(*own_args, **own_kwargs)
        finally:
            both = zip(parameters, versions, strict=True)
            moved = [clean_name(name) for (name, p), before in both if p._version != before]
            if moved:
                self._obstacle = f"forward() changes parameters ({', '.join(moved[:3])})"
                self._refuse()

    def _refuse(self) -> None:
        self._warn.warn(
            "no eager pass",
            f"the model is compiled, and {self._obstacle}, so it is not run a second time: feature "
            f'maps are not logged; with compiled="eager" they are, but {NOT_NEUTRAL}',
        )


def _obstacle(model: nn.Module) -> str:
    """Why a pass of this process alone is impossible; "" if it is possible."""
    if is_sharded(model) or are_flattened(model):
        return "its parameters are sharded over ranks, which would wait for each other"
    if any(isinstance(module, nn.SyncBatchNorm) for module in model.modules()):
        return "it has SyncBatchNorm layers, in which ranks would wait for each other"
    return ""


def copied_values(values: Any) -> Any:
    """A deep copy of arguments, which the model may change; tensors without their graph."""
    return copy.deepcopy(values, {id(t): detached_copy(t) for t in tensors(values)})


def detached_copy(tensor: Tensor) -> Tensor:
    """A copy that shares neither memory nor a graph with the tensor."""
    return tensor.detach().clone()
