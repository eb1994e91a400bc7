"""A file on disk that grows by whole records."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from fmapboard.errors import WriteError

_AT_ONCE = 512
"""Parts that are written at a time; Linux and macOS take 1024."""


class LocalFile:
    """Appends records, unbuffered; not thread safe.

    Args:
        path: of the file.
        begun: the file is there, and is appended to; else it must not exist.

    Raises:
        WriteError: the file cannot be opened.
    """

    def __init__(self, path: Path, *, begun: bool = False) -> None:
        self.path = path
        try:
            self._file = path.open("ab" if begun else "xb", buffering=0)
        except OSError as error:
            raise WriteError(f"cannot write to {path}: {error.strerror or error}") from error

    def append(self, record: list[bytes]) -> None:
        """Write a record, given in parts.

        Raises:
            WriteError: it could not be written whole; the file ends behind the last whole record.
        """
        end = self._file.tell()
        try:
            _write(self._file, record)
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError):  # a medium that is gone
                self._cut(end)
            why = getattr(error, "strerror", None) or error
            raise WriteError(f"cannot write {self.path}: {why}") from error

    def is_gone(self) -> bool:
        """True if another file, or none, is found under the path: it was deleted or moved."""
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _cut(self, end: int) -> None:
        """Take half a record away: readers stop for good at a broken one."""
        if not self._file.closed:
            self._file.seek(end)
            self._file.truncate()


def _write(file: io.FileIO, parts: list[bytes]) -> None:
    """All of the parts, each from where it lies: joined, they would take fresh memory."""
    for first in range(0, len(parts), _AT_ONCE):
        some = parts[first : first + _AT_ONCE]
        written = os.writev(file.fileno(), some) if hasattr(os, "writev") else 0  # not on Windows
        if written < sum(map(len, some)):
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[file.write(rest) :]
