"""The bytes that a page embeds, each once, compressed where that helps."""

from __future__ import annotations

import base64
import gzip
import hashlib

_SMALL = 200
"""Bytes up to which nothing is compressed."""
_TAG = b'<script type="text/plain" id="%s">%s</script>\n'


class Blobs:
    """Stores bytes and names them; the names of compressed ones begin with ``z``.

    Attributes:
        embedded: bytes that are stored, after compression and before base64.
        size: bytes that they take in the page.
    """

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._stored: dict[str, bytes] = {}
        self.embedded = 0
        self.size = 0

    def add(self, blob: bytes) -> str:
        """The name of these bytes."""
        digest = hashlib.sha256(blob).digest()
        name = self._names.get(digest)
        if name is None:
            packed = blob if len(blob) < _SMALL else gzip.compress(blob, 6, mtime=0)
            is_smaller = len(packed) < 0.95 * len(blob)
            name = f"{'z' if is_smaller else 'b'}{len(self._names)}"
            stored = packed if is_smaller else blob
            self._names[digest], self._stored[name] = name, stored
            self.embedded += len(stored)
            self.size += len(_TAG) - 4 + len(name) + 4 * -(-len(stored) // 3)
        return name

    def page_parts(self) -> list[bytes]:
        """Elements that hold the bytes as base64, which no HTML parser can misread."""
        return [
            _TAG % (name.encode(), base64.b64encode(blob)) for name, blob in self._stored.items()
        ]
