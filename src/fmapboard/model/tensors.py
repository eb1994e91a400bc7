"""Find and replace tensors in the nested values that modules take and return."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal

import torch
from torch import Tensor

Unread = Literal["nested", "sparse", "empty", "meta", "fake", "transformed"]
"""Why a tensor is not read; *transformed* is a tensor under ``vmap`` or ``torch.func.grad``."""

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def is_observable(tensor: Tensor) -> bool:
    """True if the tensor holds values that can be read now, as a dense array."""
    return why_unread(tensor) is None


def why_unread(tensor: Tensor) -> Unread | None:
    """Why the tensor's values cannot be read as a dense array; None if they can."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout in _SPARSE:
        return "sparse"
    if tensor.numel() == 0:
        return "empty"
    if tensor.is_meta:
        return "meta"
    if type(tensor).__name__ == "FakeTensor":
        return "fake"
    return "transformed" if torch._C._functorch.is_functorch_wrapped_tensor(tensor) else None


def first_tensor(value: Any) -> Tensor | None:
    """The first floating-point, complex or quantized tensor, if any; consumes no generator."""
    for tensor in tensors(value):
        if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized:
            return tensor
    return None


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors inside tuples, lists, mappings and dataclasses, in order."""
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
    """A copy of the structure with ``change`` applied to every tensor.

    Looks inside tuples, lists, mappings and dataclasses; any other value is returned unchanged.
    """
    if isinstance(value, Tensor):
        return change(value)
    return _map_items(value, lambda item: map_tensors(item, change))


def replace_tensor(value: Any, old: Tensor, new: Tensor) -> Any:
    """The structure with one tensor replaced wherever it occurs.

    Only what contains the tensor is copied: a layer may be given objects that it modifies.
    """
    if value is old:
        return new
    if all(tensor is not old for tensor in tensors(value)):
        return value
    return _map_items(value, lambda item: replace_tensor(item, old, new))


def _map_items(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(change, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(change, value))
    if isinstance(value, Mapping):
        return _rebuilt(value, change)
    if is_dataclass(value) and not isinstance(value, type):
        return _replaced(value, change)
    return value


def _rebuilt(value: Mapping[Any, Any], change: Callable[[Any], Any]) -> Any:
    """A mapping of the same type, or a dict if that type cannot be built from a mapping."""
    changed = {key: change(item) for key, item in value.items()}
    try:
        kind: Any = type(value)
        return kind(**changed) if is_dataclass(value) else kind(changed)
    except TypeError:
        return changed


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    twin = copy.copy(value)
    for field in fields(value):
        object.__setattr__(twin, field.name, change(getattr(value, field.name)))
    return twin
