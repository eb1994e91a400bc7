"""Thread-safe LRU caches with a limit in bytes: of blobs, and of what was built from them."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
OVERHEAD = 500
"""Estimated bytes per entry in addition to its blob: key, object header, dictionary slot."""


class BlobCache:
    """Keeps the most recently used blobs.

    Args:
        max_bytes: limit, overhead included; a blob larger than a quarter of it is not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._blobs: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes in use, overhead included."""
        return self._held

    def get(self, key: Hashable) -> bytes | None:
        """The cached blob, or None."""
        with self._lock:
            blob = self._blobs.get(key)
            if blob is not None:
                self._blobs.move_to_end(key)
            return blob

    def put(self, key: Hashable, blob: bytes) -> None:
        """Cache a blob; evicts the least recently used ones if the limit is exceeded."""
        if len(blob) + OVERHEAD > self._max_bytes // 4:
            return
        with self._lock:
            replaced = self._blobs.pop(key, None)
            if replaced is not None:
                self._held -= len(replaced) + OVERHEAD
            self._blobs[key] = blob
            self._held += len(blob) + OVERHEAD
            while self._held > self._max_bytes:
                _, evicted = self._blobs.popitem(last=False)
                self._held -= len(evicted) + OVERHEAD


class BuiltCache:
    """Keeps the most recently used values, each of which is built from its last version.

    Args:
        max_bytes: limit; the last value is kept in any case.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._locks: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()

    def renew(self, key: Hashable, build: Callable[[T | None], T], nbytes: Callable[[T], int]) -> T:
        """Build a value; concurrent calls with the same key wait for each other.

        Args:
            key: what the value is kept under.
            build: returns the value, given its last version or None; it may return that itself.
            nbytes: size of a value.
        """
        with self._lock:
            building = self._locks[key]
        with building:
            with self._lock:
                last = self._values.get(key, (0, None))[1]
            value = build(last)
            with self._lock:
                self._values.pop(key, None)
                self._values[key] = nbytes(value), value
                while len(self._values) > 1 and self._held() > self._max_bytes:
                    self._values.popitem(last=False)
        return value

    def get(self, key: Hashable) -> Any:
        """The last version of a value; None if there is none."""
        with self._lock:
            return self._values.get(key, (0, None))[1]

    def _held(self) -> int:
        return sum(size for size, _ in self._values.values())
