"""The pictures that are compressed to PNG while a test runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fmapboard.render import png


class _Library:
    """A compression library that records the thread of each stream."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.threads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def compressobj(self, *args: Any, **options: Any) -> Any:
        self.threads.append(threading.current_thread().name)
        return self._library.compressobj(*args, **options)


def record_compressions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that compress pictures from now on."""
    library = _Library(png.fastest)
    monkeypatch.setattr(png, "fastest", library)
    return library.threads
