"""``own_pass``: what surrounds a pass of a ``Twin``, so that the process stays as it was."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from fmapboard.capture.compiled import hold_eager, release_eager
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.interrupts import blocks
from fmapboard.model.distributed import PLAIN, world_size
from fmapboard.model.layers import clean_name
from fmapboard.model.tensors import tensors

Generator = tuple[str, int]
"""A generator of random numbers of torch: type and index of its device."""

RandomStates = Mapping[Generator, Tensor]


class own_pass:  # lower case: a context manager that is used like a function
    """Run a twin in a ``with`` block, after which the process is as before.

    The random states of Python, NumPy and torch, on the CPU and on the model's devices, are put
    back; nothing here waits for a device. Weights that are cast inside stay out of the user's
    autocast cache: up to torch 2.7, a cast made without a graph would be reused there, and the
    weight would get no gradient. Compiled code runs uncompiled, so that hooks are called. A
    shared parameter whose ``.data`` the pass has replaced gets it back.

    A collective is refused before anything is sent: the other ranks do not run this pass, and the
    message would be taken for one of theirs.

    Args:
        twin: what runs.
        training: the mode of all its modules; None keeps each module's own.
        keeps_parameters: refuse also an operation that writes into a parameter.

    Raises:
        NoTwin: something was refused, also if ``forward`` caught that error.
    """

    def __init__(
        self, twin: Twin, *, training: bool | None = None, keeps_parameters: bool = False
    ) -> None:
        self._model = twin.module
        self._training = training
        self._data: list[tuple[nn.Parameter, Tensor]] = []
        written: dict[int, str] = {}
        for name, parameter in self._model.named_parameters():
            if type(parameter) not in PLAIN:
                continue
            if twin.shares_parameters:
                self._data.append((parameter, parameter.data))
            if keeps_parameters:
                memory = parameter.untyped_storage()
                written[memory._cdata] = name
        self._refusal = _Refusal(written)
        self._refuses = keeps_parameters or world_size() > 1
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        generators = generators_of(self._model)
        python_state = random.getstate()
        numpy_state = np.random.get_state()
        torch_states = random_states(generators)
        caches = torch.is_autocast_cache_enabled()
        self._restore = [
            self._refusal.leave,
            partial(random.setstate, python_state),
            partial(np.random.set_state, numpy_state),
            partial(set_random_states, torch_states, generators),
            partial(torch.set_autocast_cache_enabled, caches),
            partial(release_eager, self),
            self._put_back,
        ]
        blocks.open.append(self)
        hold_eager(self)
        torch.set_autocast_cache_enabled(False)
        if self._training is not None:
            for module in self._model.modules():
                module.training = self._training
        if self._refuses:
            self._refusal.__enter__()  # type: ignore[no-untyped-call]  # torch has no types here

    def __exit__(self, *raised: object) -> None:
        for restore in self._restore:
            restore()
        self._restore = []
        blocks.ended(self)
        error: Any = raised[1] if raised else None
        reason = self._refusal.reason
        is_interrupt = error is not None and not isinstance(error, Exception)
        if not reason or is_interrupt or isinstance(error, NoTwin):
            return
        raise NoTwin(reason) from error

    def _put_back(self) -> None:
        for parameter, data in self._data:
            if parameter.data_ptr() != data.data_ptr():
                parameter.data = data


class _Refusal(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Raises ``NoTwin`` in place of a collective, and of an operation that changes a parameter.

    Args:
        written: the identity of the memory of each parameter that must not change, and its name.

    Attributes:
        reason: why something was refused; "" if nothing was.
    """

    supports_higher_order_operators = True

    def __init__(self, written: Mapping[int, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self._written = written
        self.reason = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, or refuse it."""
        kwargs = kwargs or {}
        namespace = getattr(func, "namespace", "")
        if namespace.startswith(("c10d", "_c10d")):
            operation = getattr(func, "_opname", func)
            name = str(operation).strip("_")
            self.reason = f"forward() calls a collective ({name}), which needs all processes"
        elif self._written and namespace != "prim":
            changed = self._changed(func, args, kwargs)
            if changed:
                self.reason = f"forward() changes parameters ({', '.join(changed)})"
        if self.reason:
            raise NoTwin(self.reason)
        return func(*args, **kwargs)

    def _changed(self, func: Any, args: Any, kwargs: Any) -> list[str]:
        """The parameters that an operation writes into."""
        schema = getattr(func, "_schema", None)
        if schema is None or not schema.is_mutable:
            return []
        found = []
        for number, argument in enumerate(schema.arguments):
            alias = argument.alias_info
            if alias is None or not alias.is_write:
                continue
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            for tensor in tensors(value):
                if type(tensor) not in PLAIN or tensor.layout is not torch.strided:
                    continue
                memory = tensor.untyped_storage()
                name = self._written.get(memory._cdata)
                if name is not None:
                    found.append(clean_name(name))
        return found

    def leave(self) -> None:
        """Refuse no more; does nothing if this mode is not active."""
        for place in range(torch._C._len_torch_dispatch_stack()):
            if torch._C._get_dispatch_stack_at(place) is self:
                self.__exit__(None, None, None)
                return


def generators_of(model: nn.Module) -> list[Generator]:
    """The generators that a model may draw from: the CPU's, and those of its devices."""
    devices = {parameter.device for parameter in model.parameters()}
    places = {(device.type, device.index or 0) for device in devices}
    found = [("cpu", 0)]
    for place in places:
        module = getattr(torch, place[0], None)
        if hasattr(module, "get_rng_state"):
            found.append(place)
    return found


def random_states(generators: Iterable[Generator]) -> RandomStates:
    """The states of generators at this moment."""
    states = {}
    for kind, index in generators:
        if kind == "cpu":
            states[kind, index] = torch.get_rng_state()
            continue
        module = torch.get_device_module(kind)
        states[kind, index] = module.get_rng_state(index)
    return states


def set_random_states(states: RandomStates, generators: Iterable[Generator]) -> None:
    """Set the states of those of the generators whose states are given."""
    for kind, index in states.keys() & set(generators):
        state = states[kind, index]
        if kind == "cpu":
            torch.set_rng_state(state)
            continue
        module = torch.get_device_module(kind)
        module.set_rng_state(state, index)
