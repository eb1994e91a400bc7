"""A cache of blobs that is bounded in bytes; thread safe."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

OVERHEAD = 500
"""Bytes that an entry costs beside its blob: key, object, place."""


class BlobCache:
    """Keeps the blobs used last.

    Args:
        most: bytes, overhead included; a blob above a quarter of that is not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._blobs: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held

    def get(self, key: Hashable) -> bytes | None:
        """The blob, or None."""
        with self._lock:
            blob = self._blobs.get(key)
            if blob is not None:
                self._blobs.move_to_end(key)
            return blob

    def put(self, key: Hashable, blob: bytes) -> None:
        """Keep a blob; the ones unused for longest make room."""
        if len(blob) + OVERHEAD > self._most // 4:
            return
        with self._lock:
            before = self._blobs.pop(key, None)
            if before is not None:
                self._held -= len(before) + OVERHEAD
            self._blobs[key] = blob
            self._held += len(blob) + OVERHEAD
            while self._held > self._most:
                _, gone = self._blobs.popitem(last=False)
                self._held -= len(gone) + OVERHEAD
