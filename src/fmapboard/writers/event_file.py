"""Event files: TFRecord framing with a checksum in C, one file a directory and process.

A record is its length (u64), the length's masked CRC-32C (u32), the bytes, and their masked
CRC-32C (TensorFlow's `record_writer`). TensorBoard's own writer computes the checksum in pure
Python, at about 6 MB/s and holding the interpreter lock; `google-crc32c` is a thousand times
faster.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from pathlib import Path

from tensorboard.compat.proto import event_pb2

from fmapboard.errors import WriteError, log
from fmapboard.writers import checksum
from fmapboard.writers.encoder import field
from fmapboard.writers.local_file import LocalFile
from fmapboard.writers.remote import RemoteDirectory, RemoteFile
from fmapboard.writers.trackers import begun_for_trackers

MARKER = ".fmapboard"
"""Stands in the names of our event files, which so differ from those of other writers."""

_OPEN: dict[Path | str, EventFile] = {}
_LOCK = threading.RLock()  # the collector may close one file while another is being opened


class EventFile:
    """An event file that several loggers of one process may share; thread safe.

    Two files that grow in one directory at the same time lose data in TensorBoard's Python loader,
    so `open` gives everybody who asks for a directory the same file.
    """

    def __init__(self, directory: Path | RemoteDirectory, suffix: str, start_step: int) -> None:
        self._key = _key(directory)
        # The process may go to another directory meanwhile.
        self._directory = directory.absolute() if isinstance(directory, Path) else directory
        self._suffix, self._start_step = suffix, start_step
        self._users = 1
        self._lock = threading.Lock()
        self._times_begun = 1
        self._file = self._begun()

    @property
    def path(self) -> Path | str:
        """The path of the file; of a remote one, the URL of the object that grows."""
        return self._file.path

    @staticmethod
    def open(directory: Path | RemoteDirectory, suffix: str = "", start_step: int = 0) -> EventFile:
        """The process's event file in a directory, made where there is none yet.

        Raises:
            WriteError: the directory cannot be written to.
        """
        key = _key(directory)
        with _LOCK:
            shared = _OPEN.get(key)
            # A directory may have been deleted under an open file: a notebook's cell run again.
            if shared is not None and not shared._file.is_gone():
                shared._users += 1
                return shared
            _OPEN[key] = EventFile(directory, suffix, start_step)
            return _OPEN[key]

    def times_begun(self) -> int:
        """How often the file was begun: once more where it has vanished since the last step.

        What is in an earlier file is lost, the descriptions of tags too. A file that was replaced
        by that of a later logger stays lost.

        Raises:
            WriteError: the directory cannot be made again.
        """
        with _LOCK, self._lock:
            if self._file.is_gone() and _OPEN.get(self._key) is self:
                old, self._file = self._file, self._begun()
                old.close()
                self._times_begun += 1
                log.warning(
                    "%s was deleted or moved during the run, with all steps logged so far; the "
                    "steps from here on are written to %s",
                    *(old.path, self._file.path),
                )
        return self._times_begun

    def add(self, summary: list[bytes], step: int, wall_time: float) -> None:
        """Append one serialized Summary, given in parts.

        Raises:
            WriteError: it could not be written whole (a full disk, say); the file ends behind the
                last whole record and can be appended to again.
        """
        event = event_pb2.Event(wall_time=wall_time, step=step).SerializeToString()
        record = _framed(event, *field(event_pb2.Event.SUMMARY_FIELD_NUMBER, *summary))
        with self._lock:
            self._file.append(record)

    def close(self) -> None:
        """Let go; the last user's call closes the file."""
        with _LOCK:
            self._users -= 1
            if self._users == 0:
                if _OPEN.get(self._key) is self:
                    del _OPEN[self._key]
                self._file.close()

    def _begun(self) -> LocalFile | RemoteFile:
        """A new file with its first records."""
        version = event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2")
        head = _framed(version.SerializeToString())
        # The second such mark in a run tells TensorBoard's Python loader to forget what an earlier
        # process logged from this step on; the first one means nothing, so every file has one.
        event = event_pb2.Event(
            wall_time=time.time(),
            step=self._start_step,
            session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START),
        )
        mark = _framed(event.SerializeToString())
        if isinstance(self._directory, Path):
            return _local(self._directory, self._suffix, head, mark)
        self._directory.make()
        file = RemoteFile(self._directory, lambda: _file_name(self._suffix), head)
        file.append(mark)
        return file


def _local(directory: Path, suffix: str, head: list[bytes], mark: list[bytes]) -> LocalFile:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write to {directory}: {error.strerror or error}") from error
    begun = begun_for_trackers(directory, MARKER + suffix)
    file = LocalFile(begun or directory / _file_name(suffix), begun=begun is not None)
    try:
        file.append(mark if begun else [*head, *mark])
    except WriteError:
        file.close()
        file.path.unlink(missing_ok=True)
        raise
    return file


def _key(directory: Path | RemoteDirectory) -> Path | str:
    return directory.resolve() if isinstance(directory, Path) else directory.url


def has_foreign_events(directory: Path | RemoteDirectory) -> bool:
    """Does the directory hold event files of another writer, the user's SummaryWriter say?"""
    if isinstance(directory, RemoteDirectory):
        names = directory.names()
    else:
        names = [path.name for path in directory.glob("*tfevents*")] if directory.is_dir() else []
    return any("tfevents" in name and MARKER not in name for name in names)


def _file_name(suffix: str) -> str:
    stamp = f"{time.time_ns() // 10**9}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
    return f"events.out.tfevents.{stamp}{MARKER}{suffix}"


def _framed(*parts: bytes) -> list[bytes]:
    """A record of the file, in parts: an event with its length and checksums."""
    length = struct.pack("<Q", sum(map(len, parts)))
    crc = 0
    for part in parts:
        crc = checksum.extend(crc, part)
    return [length, _masked(checksum.value(length)), *parts, _masked(crc)]


def _masked(crc: int) -> bytes:
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
