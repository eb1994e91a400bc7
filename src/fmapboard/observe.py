"""A place to compute inside somebody else's forward pass without leaving a trace."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.threads import one_thread


@contextlib.contextmanager
def aside(device_type: str) -> Iterator[None]:
    """Compute beside the user's pass: no graph, no autocast, no dispatch modes, no other threads.

    Selective checkpointing records every operation that it sees, even without gradients; with the
    modes disabled it sees none of ours.
    """
    # Torch sets a thread's number when it is first asked for: before ours, or it would undo ours.
    torch.get_num_threads()
    with torch.no_grad(), one_thread() if device_type == "cpu" else contextlib.nullcontext():
        # Both are dear to enter, and hooks run often: only where there is something to leave.
        if not (_modes_are_active() or torch.is_autocast_enabled(device_type)):
            yield
            return
        with (
            _disable_current_modes(),
            torch.autocast(device_type, enabled=False, cache_enabled=False),
        ):
            yield


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
