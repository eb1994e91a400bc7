"""A thread-safe LRU cache of blobs with a limit in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

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
