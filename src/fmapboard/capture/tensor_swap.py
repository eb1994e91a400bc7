"""``swapped``: the tensors of a pending step exchanged for others, at little cost in Python.

A step of a ResNet-50 holds 600 tensors, and this runs on the training thread: 2 ms, where
``model.tensors.map_tensors``, which takes whatever a user's module returns, needs 11 ms.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")

Swap = Callable[[Tensor], Tensor]
_Walk = Callable[[Any, Swap], Any]

_CONSTANTS = frozenset({int, float, str, bool, type(None)})


def swapped(value: T, swap: Swap) -> T:
    """A copy of the structure with ``swap`` applied to every tensor, in order.

    Looks inside tuples, lists, mappings (which become dicts) and dataclasses; a dataclass in which
    nothing changes is not copied. Records are not searched: ``fmapboard.records`` is independent of
    torch.
    """
    result: T = _swapped(value, swap)
    return result


def _swapped(value: Any, swap: Swap) -> Any:
    kind = type(value)
    if kind in _CONSTANTS:
        return value
    walk = _WALKS.get(kind)
    if walk is None:
        walk = _WALKS[kind] = _walk_of(kind)
    return walk(value, swap)


def _walk_of(kind: type) -> _Walk:
    if issubclass(kind, Tensor):
        return lambda value, swap: swap(value)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return lambda value, swap: kind(*_items(value, swap))
    if issubclass(kind, (tuple, list)):
        return _sequence
    if issubclass(kind, Mapping):
        return lambda value, swap: {key: _swapped(item, swap) for key, item in value.items()}
    if is_dataclass(kind) and not kind.__module__.startswith("fmapboard.records"):
        return _dataclass(kind)
    return lambda value, swap: value


def _items(value: Any, swap: Swap) -> list[Any]:
    return [_swapped(item, swap) for item in value]


def _sequence(value: Any, swap: Swap) -> Any:
    if all(type(item) in _CONSTANTS for item in value):  # shapes and names
        return value
    return type(value)(_items(value, swap))


def _dataclass(kind: type) -> _Walk:
    names = tuple(field.name for field in fields(kind))
    has_slots = "__slots__" in vars(kind) and kind.__base__ is object
    make, put = object.__new__, object.__setattr__

    def walk(value: Any, swap: Swap) -> Any:
        before = [getattr(value, name) for name in names]
        after = _items(before, swap)
        if all(map(operator.is_, before, after)):
            return value
        twin = make(kind) if has_slots else copy.copy(value)
        for name, item in zip(names, after, strict=True):
            put(twin, name, item)
        return twin

    return walk


_WALKS: dict[type, _Walk] = {}
"""How to walk a value, by its exact type; filled as types are met."""
