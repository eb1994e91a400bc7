"""The pictures that are compressed to PNG while a test runs."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest

from fmapboard.render import deflate


class Compression(NamedTuple):
    """One compressed picture."""

    thread: str
    """Name of the thread that compressed it."""
    rows: bytearray
    """The filtered rows that were compressed."""


class _Stream:
    def __init__(self, stream: Any, rows: bytearray) -> None:
        self._stream, self._rows = stream, rows

    def compress(self, rows: Any) -> bytes:
        self._rows += bytes(memoryview(rows).cast("B"))
        return self._stream.compress(rows)  # type: ignore[no-any-return]

    def flush(self) -> bytes:
        return self._stream.flush()  # type: ignore[no-any-return]


class _Library:
    """A compression library that records what it compresses."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.compressions: list[Compression] = []

    def compressobj(self, *args: Any, **options: Any) -> _Stream:
        made = Compression(threading.current_thread().name, bytearray())
        self.compressions.append(made)
        return _Stream(self._library.compressobj(*args, **options), made.rows)


def record_compressions(monkeypatch: pytest.MonkeyPatch) -> list[Compression]:
    """The pictures compressed from now on, in order, except those marked as compact."""
    library = _Library(deflate.fastest)
    monkeypatch.setattr(deflate, "fastest", library)
    return library.compressions
