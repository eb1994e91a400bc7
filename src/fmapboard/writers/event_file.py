"""Event files: TFRecord framing with a checksum in C, one file a directory and process.

A record is its length (u64), the length's masked CRC-32C (u32), the bytes, and their masked
CRC-32C (TensorFlow's `record_writer`). TensorBoard's own writer computes the checksum in pure
Python, at about 6 MB/s and holding the interpreter lock; `google-crc32c` is a thousand times
faster.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import struct
import threading
import time
from pathlib import Path

from tensorboard.compat.proto import event_pb2

from fmapboard.errors import WriteError
from fmapboard.writers import checksum
from fmapboard.writers.encoder import field

MARKER = ".fmapboard"
"""Stands in the names of our event files, which so differ from those of other writers."""

_AT_ONCE = 512
"""Parts that are written at a time; Linux and macOS take 1024."""

_OPEN: dict[Path, EventFile] = {}
_LOCK = threading.RLock()  # the collector may close one file while another is being opened


class EventFile:
    """An event file that several loggers of one process may share; thread safe.

    Two files that grow in one directory at the same time lose data in TensorBoard's Python loader,
    so `open` gives everybody who asks for a directory the same file.
    """

    def __init__(self, directory: Path, suffix: str, start_step: int) -> None:
        directory = directory.absolute()  # the process may go to another directory meanwhile
        self._key = directory.resolve()
        self._users = 1
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.path = directory / _file_name(suffix)
            self._file = self.path.open("xb", buffering=0)
        except OSError as error:
            raise WriteError(f"cannot write to {directory}: {error.strerror or error}") from error
        try:
            self._begin(start_step)
        except WriteError:
            self._file.close()
            self.path.unlink(missing_ok=True)
            raise

    def _begin(self, start_step: int) -> None:
        event = event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2")
        self._append(event.SerializeToString())
        # The second such mark in a run tells TensorBoard's Python loader to forget what an earlier
        # process logged from this step on; the first one means nothing, so every file has one.
        event = event_pb2.Event(
            wall_time=time.time(),
            step=start_step,
            session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START),
        )
        self._append(event.SerializeToString())

    @staticmethod
    def open(directory: Path, suffix: str = "", start_step: int = 0) -> EventFile:
        """The process's event file in a directory, made where there is none yet.

        Raises:
            WriteError: the directory cannot be written to.
        """
        key = directory.resolve()
        with _LOCK:
            shared = _OPEN.get(key)
            # A directory may have been deleted under an open file: a notebook's cell run again.
            if shared is not None and shared.path.exists():
                shared._users += 1
                return shared
            _OPEN[key] = EventFile(directory, suffix, start_step)
            return _OPEN[key]

    def add(self, summary: list[bytes], step: int, wall_time: float) -> None:
        """Append one serialized Summary, given in parts.

        Raises:
            WriteError: it could not be written whole (a full disk, say); the file ends behind the
                last whole record and can be appended to again.
        """
        event = event_pb2.Event(wall_time=wall_time, step=step).SerializeToString()
        self._append(event, *field(event_pb2.Event.SUMMARY_FIELD_NUMBER, *summary))

    def close(self) -> None:
        """Let go; the last user's call closes the file."""
        with _LOCK:
            self._users -= 1
            if self._users == 0:
                if _OPEN.get(self._key) is self:
                    del _OPEN[self._key]
                self._file.close()

    def _append(self, *event: bytes) -> None:
        """A serialized event, in parts."""
        record = _framed(event)
        with self._lock:
            end = self._file.tell()
            try:
                _write(self._file, record)
            except (OSError, ValueError) as error:
                with contextlib.suppress(OSError):  # a medium that is gone
                    self._cut(end)
                why = getattr(error, "strerror", None) or error
                raise WriteError(f"cannot write {self.path}: {why}") from error

    def _cut(self, end: int) -> None:
        """Take half a record away: readers stop for good at a broken one."""
        if not self._file.closed:
            self._file.seek(end)
            self._file.truncate()


def has_foreign_events(directory: Path) -> bool:
    """Does the directory hold event files of another writer, the user's SummaryWriter say?"""
    if not directory.is_dir():
        return False
    return any(MARKER not in path.name for path in directory.glob("*tfevents*"))


def _file_name(suffix: str) -> str:
    stamp = f"{time.time_ns() // 10**9}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
    return f"events.out.tfevents.{stamp}{MARKER}{suffix}"


def _write(file: io.FileIO, parts: list[bytes]) -> None:
    """All of the parts, each from where it lies: joined, they would take fresh memory."""
    for first in range(0, len(parts), _AT_ONCE):
        some = parts[first : first + _AT_ONCE]
        written = os.writev(file.fileno(), some) if hasattr(os, "writev") else 0  # not on Windows
        if written < sum(map(len, some)):
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[file.write(rest) :]


def _framed(parts: tuple[bytes, ...]) -> list[bytes]:
    length = struct.pack("<Q", sum(map(len, parts)))
    crc = 0
    for part in parts:
        crc = checksum.extend(crc, part)
    return [length, _masked(checksum.value(length)), *parts, _masked(crc)]


def _masked(crc: int) -> bytes:
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
