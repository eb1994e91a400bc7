"""A place to compute inside somebody else's forward pass without leaving a trace."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.threads import one_thread, team


class aside:  # a context manager, used as a function
    """Compute beside the user's pass: no graph, no autocast, no dispatch modes, no other threads.

    Selective checkpointing records every operation that it sees, even without gradients; with the
    modes disabled it sees none of ours.

    Args:
        device_type: of what is read.
        nbytes: how much is read; on the CPU several threads may read much (`threads`).
    """

    __slots__ = ("_begun", "_device_type", "_left", "_nbytes", "_no_grad", "_one_thread")

    def __init__(self, device_type: str, nbytes: int = 0) -> None:
        self._device_type, self._nbytes = device_type, nbytes
        self._no_grad = torch.no_grad()
        self._one_thread: one_thread | None = None
        self._begun: float | None = None
        self._left: contextlib.ExitStack | None = None

    def __enter__(self) -> None:
        self._no_grad.__enter__()
        if self._device_type == "cpu":
            if team.reads(self._nbytes):
                self._begun = time.perf_counter()
            else:
                self._one_thread = one_thread()
                self._one_thread.__enter__()
        # Both are dear to enter, and hooks run often: only where there is something to leave.
        if _modes_are_active() or torch.is_autocast_enabled(self._device_type):
            self._left = contextlib.ExitStack()
            self._left.enter_context(_disable_current_modes())
            autocast = torch.autocast(self._device_type, enabled=False, cache_enabled=False)
            self._left.enter_context(autocast)

    def __exit__(self, *error: Any) -> None:
        if self._left is not None:
            self._left.close()
        if self._one_thread is not None:
            self._one_thread.__exit__()
        if self._begun is not None:
            team.took(time.perf_counter() - self._begun, self._nbytes)
        self._no_grad.__exit__(*error)


def _modes_are_active() -> bool:
    before_dispatch = _len_torch_dispatch_stack_pre_dispatch()  # type: ignore[no-untyped-call]  # torch
    return bool(torch._C._len_torch_dispatch_stack() or before_dispatch)


def is_observable(tensor: Tensor) -> bool:
    """Does the tensor hold numbers that can be read now (not meta, fake, empty or in vmap)?"""
    if tensor.numel() == 0 or tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def first_tensor(value: Any) -> Tensor | None:
    """The first floating-point, complex or quantized tensor; no generator is consumed."""
    for tensor in tensors(value):
        if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized:
            return tensor
    return None


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors inside tuples, lists, dicts and dataclasses, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors(getattr(value, field.name, None))


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same structure with every tensor changed: tuples, lists, mappings and dataclasses.

    Anything else comes back as it is.
    """
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(item, change) for item in value)
    if isinstance(value, Mapping):
        return _rebuilt(value, change)
    if is_dataclass(value) and not isinstance(value, type):
        return _replaced(value, change)
    return value


def _rebuilt(value: Mapping[Any, Any], change: Callable[[Tensor], Any]) -> Any:
    """A mapping of the same kind, or a dict where that kind is not built from another mapping."""
    changed = {key: map_tensors(item, change) for key, item in value.items()}
    try:
        kind: Any = type(value)
        return kind(**changed) if is_dataclass(value) else kind(changed)
    except TypeError:
        return changed


def _replaced(value: Any, change: Callable[[Tensor], Any]) -> Any:
    twin = copy.copy(value)
    for field in fields(value):
        object.__setattr__(twin, field.name, map_tensors(getattr(value, field.name), change))
    return twin
