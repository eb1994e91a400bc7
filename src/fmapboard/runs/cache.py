"""A bounded cache of values, shared by threads."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
OVERHEAD = 500
"""Estimated bytes per entry in addition to its value: key, object header, dictionary slot."""


class Cache:
    """Keeps the most recently used values; thread-safe.

    Args:
        max_bytes: limit, overhead included; the last value is kept in any case.
        most: a larger value is not kept, bytes.
    """

    def __init__(self, max_bytes: int, most: float = math.inf) -> None:
        self._max_bytes, self._most = max_bytes, most
        self._values: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        # A lock per key, for as long as it is used.
        self._building: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.held = 0
        """Bytes in use, overhead included."""

    def get(self, key: Hashable) -> Any:
        """The value that was put last under a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][1]

    def put(self, key: Hashable, value: object, nbytes: int) -> None:
        """Keep a value; evicts the least recently used ones if the limit is exceeded."""
        size = nbytes + OVERHEAD
        if size > self._most:
            return
        with self._lock:
            self.held += size - self._values.pop(key, (0, None))[0]
            self._values[key] = size, value
            while self.held > self._max_bytes and len(self._values) > 1:
                _, (freed, _) = self._values.popitem(last=False)
                self.held -= freed

    def renew(self, key: Hashable, build: Callable[[T | None], T], nbytes: Callable[[T], int]) -> T:
        """Build a value; concurrent calls with the same key wait for each other.

        Args:
            key: what the value is kept under.
            build: returns the value, given its last version or None; it may return that itself.
            nbytes: size of a value; one of 0 bytes is not kept: of a name that somebody made up,
                there is nothing.
        """
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            value = build(self.get(key))
            size = nbytes(value)
            if size:
                self.put(key, value, size)
        return value
