"""Passes of fmapboard's own: on fixed images, and beside a compiled pass of the training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.transfer import pinned_memory
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.errors import WarnOnce
from fmapboard.interrupts import interrupt_in, raise_interrupt
from fmapboard.model.distributed import are_flattened, is_sharded
from fmapboard.model.layers import WatchedLayers
from fmapboard.model.tensors import map_tensors


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


def run_side_pass(
    model: nn.Module | Twin,
    probe: Any,
    loss: Callable[[Any], Tensor] | None = None,
    *,
    keeps_parameters: bool = False,
) -> Any:
    """Run a twin of the unwrapped model on the probe in eval mode, without autocast.

    Args:
        model: any module, or its twin, which changes. Under DistributedDataParallel the inner
            module runs, so no rank waits for another.
        probe: a ``Probe``, or its images. Floating-point tensors are moved to the device and dtype
            of the model's first floating-point parameter, other tensors to its device.
        loss: a function of what ``forward`` returned. Its gradient is taken with respect to the
            images, so no parameter gets one, and neither the hooks of optimizers nor those of
            DistributedDataParallel run. None computes no gradients.
        keeps_parameters: refuse an operation that writes into a parameter.

    Returns:
        What ``forward`` returned.

    Raises:
        NoTwin: the pass is refused.
    """
    twin = model if isinstance(model, Twin) else Twin(model)
    inner = twin.module
    kept = probe if isinstance(probe, Probe) else Probe(probe)
    leaves: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaves.append(tensor.requires_grad_())
        return tensor.clone()  # the first layer may overwrite its input

    with (
        # The outermost, as an interrupt may keep it from ending until the others have ended.
        own_pass(twin, training=False, keeps_parameters=keeps_parameters),
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
    """Runs an uncompiled pass of a twin of a compiled model right before the compiled pass.

    It runs on copies of what the model is called with: each module in its own mode, under the
    caller's autocast, without gradients. The training is bitwise the same with and without it.

    Args:
        watched: the watched layers of the model.
        warn: where the reason is reported, once, if there are no such passes.

    Attributes:
        was_left_out: True if the last pass was not possible.
    """

    def __init__(self, watched: WatchedLayers, warn: WarnOnce) -> None:
        self._model = watched.model
        self._warn = warn
        self._obstacle = ""
        self.was_left_out = False

    def can_run(self) -> bool:
        """True if a pass is possible now."""
        if not self._obstacle:
            self._obstacle = _obstacle(self._model)
        if self._obstacle:
            self._refuse()
            return False
        # The user's own pass gives lazy parameters their values.
        self.was_left_out = any(map(is_lazy, self._model.parameters()))
        return not self.was_left_out

    def run(
        self,
        module: nn.Module,
        args: Any,
        kwargs: Any,
        hooked: Callable[[Twin], AbstractContextManager[None]],
    ) -> bool:
        """Run the pass.

        Args:
            module: what is called: the model, a part of it, or what torch.compile made of it.
            args: what it is called with.
            kwargs: likewise.
            hooked: a block in which the layers of the twin are recorded.

        Returns:
            False if the pass was refused; what it has recorded until then is incomplete.
        """
        try:
            twin = Twin(module)
            with torch.no_grad(), own_pass(twin, keeps_parameters=True), hooked(twin):
                own_args, own_kwargs = _own_arguments(args, kwargs)
                twin.module(*own_args, **own_kwargs)
        except NoTwin as error:
            self._obstacle = str(error)
            self._refuse()
            return False
        return True

    def _refuse(self) -> None:
        self.was_left_out = True
        self._warn.warn(
            "no eager pass",
            f"the model is compiled, and {self._obstacle}, so it is not run a second time: feature "
            f'maps are not logged; with compiled="eager" they are, but {NOT_NEUTRAL}',
        )


def _own_arguments(args: Any, kwargs: Any) -> Any:
    """Copies of arguments; of what cannot be copied as a whole, copies of the tensors in it."""
    try:
        return copied_values((args, kwargs))
    except Exception as error:
        raise_interrupt(error)
        return map_tensors((args, kwargs), detached_copy)


def _obstacle(model: nn.Module) -> str:
    """Why a pass of this process alone is impossible; "" if it is possible."""
    if is_sharded(model) or are_flattened(model):
        return "its parameters are sharded over ranks, which would wait for each other"
    if any(isinstance(module, nn.SyncBatchNorm) for module in model.modules()):
        return "it has SyncBatchNorm layers, in which ranks would wait for each other"
    return ""


def copied_values(values: Any) -> Any:
    """A deep copy of arguments, which the model may change; tensors without their graph.

    Raises:
        Exception: something cannot be copied.
    """
    return copy.deepcopy(values, {id(t): detached_copy(t) for t in _held(values)})


def _held(values: Any) -> list[Tensor]:
    """All tensors inside a value, also those in attributes of objects such as a cache of keys."""
    found = list[Tensor]()
    seen = set[int]()
    due = [values]
    while due:
        item = due.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, Mapping):
            due += item.values()
        elif isinstance(item, (list, tuple, set)):
            due += item
        elif not isinstance(item, (nn.Module, type)):
            due += getattr(item, "__dict__", {}).values()
    return found


def detached_copy(tensor: Tensor) -> Tensor:
    """A copy that shares neither memory nor a graph with the tensor."""
    return tensor.detach().clone()
