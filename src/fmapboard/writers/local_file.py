"""Append whole records to a file on disk."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from fmapboard.errors import WriteError

_AT_ONCE = 512
"""Maximum number of parts per write; Linux and macOS accept 1024."""


class LocalFile:
    """Appends records, unbuffered; not thread-safe.

    Args:
        path: Path of the file.
        begun: True if the file exists and is appended to; otherwise it must not exist.

    Raises:
        WriteError: The file cannot be opened.
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
            WriteError: The record could not be written completely; the file ends after the last
                complete one.
        """
        end = self._file.tell()
        try:
            _write(self._file, record)
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError):  # the device may be gone
                self._cut(end)
            why = getattr(error, "strerror", None) or error
            raise WriteError(f"cannot write {self.path}: {why}") from error

    def is_gone(self) -> bool:
        """True if the file was deleted or moved: its path has no file or another one."""
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
        """Remove an incomplete record, which no reader would get past."""
        if not self._file.closed:
            self._file.seek(end)
            self._file.truncate()


def _write(file: io.FileIO, parts: list[bytes]) -> None:
    """Write all parts without joining them, which would allocate memory for a copy."""
    for first in range(0, len(parts), _AT_ONCE):
        some = parts[first : first + _AT_ONCE]
        written = os.writev(file.fileno(), some) if hasattr(os, "writev") else 0  # not on Windows
        if written < sum(map(len, some)):
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[file.write(rest) :]
