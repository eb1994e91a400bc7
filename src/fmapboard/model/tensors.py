"""The one walk of nested values: find, copy and replace the tensors in them; pack many tensors.

Values are those that modules take and return, and everything collected in a logged step. The walk
looks inside tuples, lists, mappings and dataclasses, but not inside ``fmapboard.records``, which
hold no tensors.
"""

from __future__ import annotations

import copy
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, Literal, NamedTuple

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
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "transformed"
    return None


def first_tensor(value: Any) -> Tensor | None:
    """The first floating-point, complex or quantized tensor, if any; consumes no generator."""
    found = [value] if isinstance(value, Tensor) else tensors(value)
    for tensor in found:
        if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized:
            return tensor
    return None


def dense(tensor: Tensor) -> Tensor:
    """The values of any tensor that holds some as a dense one, detached and dequantized."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is torch.strided:
        return tensor
    return tensor.to_dense()


_Inside = Literal["tensor", "items", "values", "nothing"] | tuple[str, ...]

_CONSTANTS = frozenset({int, float, str, bool, type(None)})


def _structure(kind: type) -> _Inside:
    """Where to look inside values of a type; for a dataclass, the names of its fields."""
    if issubclass(kind, Tensor):
        return "tensor"
    if issubclass(kind, Mapping):
        return "values"
    if issubclass(kind, (tuple, list)):
        return "items"
    if is_dataclass(kind) and not kind.__module__.startswith("fmapboard.records"):
        return tuple(field.name for field in fields(kind))
    return "nothing"


_inside: Callable[[Any], _Inside] = lru_cache(maxsize=512)(_structure)


def _items(value: Any, inside: _Inside) -> Iterable[Any]:
    if inside == "values":
        return value.values()  # type: ignore[no-any-return]  # of a mapping
    if inside == "items":
        return value  # type: ignore[no-any-return]  # a tuple or list
    return map(getattr, repeat(value), inside, repeat(None))


def tensors(value: Any) -> list[Tensor]:
    """All tensors inside a nested value, in order; a container that occurs again is not searched.

    One loop instead of a recursion: a logged step holds hundreds of tensors, and this runs on the
    training thread.
    """
    found = list[Tensor]()
    seen = dict[int, Any]()
    due = [value]
    while due:
        item = due.pop()
        inside = _inside(type(item))
        if inside == "tensor":
            found.append(item)
            continue
        if inside == "nothing" or id(item) in seen:
            continue
        seen[id(item)] = item
        if inside == "values":
            item = item.values()
        elif inside != "items":
            item = map(getattr, repeat(item), inside, repeat(None))
        inner = [*item]
        if not _CONSTANTS.issuperset(map(type, inner)):
            due += inner[::-1]
    return found


def named_tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors inside a nested value, each with its place, such as ``aux.0``; "" for itself."""
    inside = _inside(type(value))
    if inside == "tensor":
        yield name, value
        return
    if inside == "nothing":
        return
    keys: Iterable[Any] = inside  # names of fields
    if inside == "values":
        keys = value
    elif inside == "items":
        keys = getattr(value, "_fields", range(len(value)))
    for key, item in zip(keys, _items(value, inside), strict=False):
        place = f"{name}.{key}" if name else str(key)
        yield from named_tensors(item, place)


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """A copy of the structure with ``change`` applied to every tensor, in order.

    Any other value is returned unchanged, and so are a tuple of constants and a frozen dataclass in
    which nothing changes.
    """
    inside = _inside(type(value))
    if inside == "tensor":
        return change(value)
    if inside == "nothing":
        return value
    own = [*_items(value, inside)]
    if isinstance(value, tuple) and _CONSTANTS.issuperset(map(type, own)):
        return value
    items = [item if type(item) in _CONSTANTS else map_tensors(item, change) for item in own]
    return _rebuilt(value, inside, items)


def replace_tensor(value: Any, old: Tensor, new: Tensor) -> Any:
    """The structure with one tensor replaced wherever it occurs.

    Only what contains the tensor is copied: a layer may be given objects that it modifies.
    """
    if value is old:
        return new
    if all(tensor is not old for tensor in tensors(value)):
        return value
    inside = _inside(type(value))
    items = [replace_tensor(item, old, new) for item in _items(value, inside)]
    return _rebuilt(value, inside, items)


def _rebuilt(value: Any, inside: _Inside, items: list[Any]) -> Any:
    """A value of the same type with other contents."""
    kind: Any = type(value)
    if inside == "items":
        if hasattr(kind, "_fields"):
            return kind(*items)
        return kind(items)
    if inside == "values":
        changed = dict(zip(value, items, strict=True))
        try:
            if hasattr(kind, "__dataclass_fields__"):
                return kind(**changed)
            return kind(changed)
        except TypeError:  # it cannot be built from a mapping
            return changed
    if kind.__dataclass_params__.frozen:
        is_same = map(operator.is_, items, _items(value, inside))
        if all(is_same):
            return value
    # ``copy`` takes long for slots.
    has_slots = getattr(kind, "__slots__", None) == inside
    twin = object.__new__(kind) if has_slots else copy.copy(value)
    for name, item in zip(inside, items, strict=True):
        object.__setattr__(twin, name, item)
    return twin


class Packed(NamedTuple):
    """Copies of tensors; those of one device, dtype and row shape share one piece of memory.

    Attributes:
        pieces: the copies, concatenated along their first axis.
        members: for each piece, the positions of its tensors in the order in which they were given.
        sizes: for each piece, the lengths of the first axes of its tensors.
    """

    pieces: tuple[Tensor, ...]
    members: tuple[tuple[int, ...], ...]
    sizes: tuple[tuple[int, ...], ...]

    def split(self) -> list[Tensor]:
        """Views of the copies, in the order in which the tensors were given."""
        found: dict[int, Tensor] = {}
        for number, piece in enumerate(self.pieces):
            views = piece.split_with_sizes(self.sizes[number])
            found.update(zip(self.members[number], views, strict=True))
        return [found[number] for number in range(len(found))]


def packed(parts: Sequence[Tensor], change: Callable[[Tensor], Tensor] | None = None) -> Packed:
    """Copy tensors in few operations: one per device, dtype, and shape without the first axis.

    Args:
        parts: any views.
        change: applied to each piece; returns one of the same length. None keeps it.
    """
    groups = alike(parts, rows=True)
    pieces = list[Tensor]()
    sizes = list[tuple[int, ...]]()
    for members in groups:
        own = [parts[number] for number in members]
        piece = torch.cat(own)
        if change is not None:
            piece = change(piece)
        pieces.append(piece)
        sizes.append(tuple(map(len, own)))
    members_of_pieces = tuple(map(tuple, groups))
    return Packed(tuple(pieces), members_of_pieces, tuple(sizes))


def alike(parts: Sequence[Tensor], *, rows: bool = False) -> list[list[int]]:
    """The positions of tensors, grouped by device and dtype; with ``rows`` also by row shape."""
    groups = defaultdict[object, list[int]](list)
    for number, part in enumerate(parts):
        shape = part.shape[1:] if rows else None
        key = (part.device, part.dtype, shape)
        groups[key].append(number)
    return list(groups.values())


def as_bytes(tensor: Tensor) -> Tensor:
    """A tensor's bytes, one after the other, uint8: a view where possible."""
    flat = tensor.contiguous().as_strided((tensor.numel(),), (1,))  # one value keeps any stride
    return flat.view(torch.uint8)
