"""``WeakTable``: values by object, without a callback when an object is deleted."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class WeakTable(Generic[K, V]):
    """Values by the identity of objects that the table does not keep alive.

    The containers of ``weakref`` register a Python callback, which garbage collection may call at
    any point of the training. An exception of a signal handler inside it would be printed and lost.
    This table has no callback: it drops the entries of deleted objects when it has grown to twice
    its size.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[K], V]] = {}
        self._limit = 32

    def get(self, key: K) -> V | None:
        """The value of an object; None if it has none."""
        entry = self._entries.get(id(key))
        if entry is None:
            return None
        reference, value = entry
        return value if reference() is key else None

    def __setitem__(self, key: K, value: V) -> None:
        reference = weakref.ref(key)
        self._entries[id(key)] = (reference, value)
        if len(self._entries) <= self._limit:
            return
        entries = list(self._entries.items())
        for number, (reference, _) in entries:
            if reference() is None:
                del self._entries[number]
        self._limit = max(32, 2 * len(self._entries))

    def __iter__(self) -> Iterator[K]:
        """The objects that exist."""
        entries = list(self._entries.values())
        for reference, _ in entries:
            key = reference()
            if key is not None:
                yield key
