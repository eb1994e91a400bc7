"""Event files that are written, one per directory and process."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import os
import re
import socket
import threading
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from tensorboard.compat.proto import event_pb2

from fmapboard.errors import WriteError, log, not_written, writing
from fmapboard.formats import framing
from fmapboard.writers.remote import RemoteDirectory, RemoteFile, make_directory
from fmapboard.writers.trackers import begun_for_trackers

try:
    import fcntl
except ImportError:  # on Windows, writers of other processes are not noticed
    fcntl = None  # type: ignore[assignment]


_HEAD = re.compile(rb"\x09.{8}(?:\x10([\x80-\xff]*[\x00-\x7f]))?(\x2a|\x3a)", re.DOTALL)
"""The beginning of a serialized event: wall time, step (a varint; absent if 0), and the tag of the
field with the contents, which is a summary or a session log."""
_HEAD_BYTES = 32
_CONTINUES = 0x80
"""Bit of a byte of a varint that says that another byte follows; the other seven are its value."""
_SESSION_LOG = b"\x3a"
"""Tag of the field of an event that begins a run."""
_AT_ONCE = 512
"""Maximum number of parts per write; Linux and macOS accept 1024."""


class LocalFile:
    """A new file that records are appended to, unbuffered; not thread-safe.

    While it is open it has a lock of the process, by which other processes see that it is written.
    The operating system releases it when the process ends, also if it is killed, and a forked
    process does not inherit it.

    Args:
        directory: Created if it does not exist.
        suffix: End of the file's name.
        head: The first record, in parts.

    Raises:
        WriteError: The file cannot be written.
    """

    def __init__(self, directory: Path, suffix: str, head: list[bytes]) -> None:
        make_directory(directory)
        begun = begun_for_trackers(directory, MARKER + suffix)
        self.path = begun or directory / _file_name(suffix)
        with writing(f"to {self.path}"):
            self._file = self.path.open("ab" if begun else "xb", buffering=0)
        self._lock()
        if begun:
            return  # with its first record
        try:
            self.append(head)
        except WriteError:
            self.remove()
            raise

    def append(self, record: list[bytes]) -> None:
        """Write a record, given in parts.

        Raises:
            WriteError: The record could not be written completely; the file ends after the last
                complete one.
        """
        self._lock()  # again: it is lost if this process reads the file and closes it
        end = self._file.tell()
        try:
            _write(self._file, record)
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError, ValueError):  # the device may be gone
                self._file.seek(end)
                self._file.truncate()  # no reader would get past an incomplete record
            raise not_written(str(self.path), error) from error

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

    def remove(self) -> None:
        """Close the file and delete it."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _lock(self) -> None:
        if fcntl is not None:
            with contextlib.suppress(OSError, ValueError):  # a file system without locks
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_written_elsewhere(path: Path) -> bool:
    """True if another process has the file open; False where its file system has no locks.

    Not to be asked of a file that this process writes, whose lock would be lost.
    """
    if fcntl is None:
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # either, says POSIX
            return True
    return False


def _has_writer_elsewhere(directory: Path | RemoteDirectory, before: str = "") -> bool:
    """True if another process writes an event file in a local directory.

    Args:
        directory: the directory.
        before: consider only files whose names sort before this one.
    """
    if isinstance(directory, RemoteDirectory):
        return False
    for name in _event_files(directory):
        if MARKER not in name or (before and name >= before):
            continue
        if _is_written_elsewhere(directory / name):
            return True
    return False


def _write(file: io.FileIO, parts: list[bytes]) -> None:
    """Write all parts without joining them, which would allocate memory for a copy."""
    for first in range(0, len(parts), _AT_ONCE):
        some = parts[first : first + _AT_ONCE]
        written = 0
        if hasattr(os, "writev"):  # not on Windows
            written = os.writev(file.fileno(), some)
        if written < sum(map(len, some)):
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[file.write(rest) :]


MARKER = ".fmapboard"
"""Part of the name of every event file of fmapboard; other writers' files do not have it."""

_OPEN: dict[Path | str, EventFile] = {}
_LOCK = threading.RLock()  # reentrant: garbage collection may close a file during open()


class EventFile:
    """An event file that several loggers of a process may share; thread-safe.

    If two files in one directory grow at the same time, TensorBoard's Python loader loses data.
    Therefore ``open`` returns the same file to all callers that ask for the same directory.

    Attributes:
        directory: as the first caller wrote it.
    """

    def __init__(self, directory: Path | RemoteDirectory, suffix: str, start_step: int) -> None:
        self.directory = directory
        self._key = _key(directory)
        self._process = os.getpid()
        self._prefixes: set[str] = set()
        # Absolute, since the process may change its working directory.
        self._directory = directory.absolute() if isinstance(directory, Path) else directory
        self._suffix = suffix
        self._start_step = start_step
        self._users = 1
        self._lock = threading.Lock()
        self._times_begun = 1
        self._is_started = False
        self._is_rerun_named = False
        self._file = self._new_file()

    @property
    def path(self) -> Path | str:
        """Path of the file; for a remote directory, the URL of the object being written."""
        return self._file.path

    @staticmethod
    def open(directory: Path | RemoteDirectory, suffix: str = "", start_step: int = 0) -> EventFile:
        """The process's event file in a directory; created if none is open.

        Args:
            directory: Created if it does not exist.
            suffix: End of a new file's name.
            start_step: If a new file is created in a directory with an earlier run, TensorBoard
                discards that run's records from this step on; 0 for the first step that is added.

        Raises:
            WriteError: The directory cannot be written to.
            ConfigurationError: The URL scheme of the directory is unknown.
            MissingExtra: A package that the URL scheme needs is not installed.
        """
        key = _key(directory)
        with _LOCK:
            shared = _open_file(directory)
            if shared is not None:
                shared._users += 1
                return shared
            _OPEN[key] = EventFile(directory, suffix, start_step)
            return _OPEN[key]

    @staticmethod
    def open_apart(
        directory: Path | RemoteDirectory, prefix: str | None, suffix: str, start_step: int
    ) -> EventFile:
        """As ``open``, in a subdirectory if another writer's steps would get mixed with these.

        That is so if another process writes to the directory, or an open writer of this process
        has the same prefix. The subdirectory is ``fmapboard_2``, or ``fmapboard_3``, …

        Args:
            directory: Created if it does not exist.
            prefix: Of the tags; it is taken until ``close``. None takes none.
            suffix: As for ``open``.
            start_step: As for ``open``.

        Raises:
            WriteError, ConfigurationError, MissingExtra: As ``open``.
        """
        opened = _open_file(directory)
        if opened is not None and prefix in opened._prefixes:
            gc.collect()  # a logger that nobody holds any more is closed by this
        place = directory
        reason = ""
        with _LOCK:
            for number in itertools.count(2):
                taken = _taken_by(place, prefix)
                if taken == "":
                    file = EventFile.open(place, suffix, start_step)
                    if not file._is_later_than_another():
                        break
                    file._give_up()
                    taken = _ANOTHER_PROCESS
                reason = reason or taken
                place = directory / f"fmapboard_{number}"
            if prefix is not None:
                file._prefixes.add(prefix)
        if reason:
            log.warning("%s", _APART[reason].format(directory, place))
        return file

    def _is_later_than_another(self) -> bool:
        """True if another process has begun a file here at the same time, a little earlier."""
        if self._users > 1 or not isinstance(self._file, LocalFile):
            return False
        return _has_writer_elsewhere(self._file.path.parent, before=self._file.path.name)

    def _give_up(self) -> None:
        del _OPEN[self._key]
        if isinstance(self._file, LocalFile):
            self._file.remove()

    def times_begun(self) -> int:
        """Number of files begun so far; begins another one if the file was deleted or moved.

        The new file lacks the earlier contents, so tags have to be described again. No file is
        begun if a later logger has already begun one in the directory.

        Raises:
            WriteError: The directory or the file cannot be created again.
        """
        with _LOCK, self._lock:
            if self._file.is_gone() and _OPEN.get(self._key) is self:
                lost = self._file
                self._file = self._new_file()
                lost.close()
                self._is_started = False
                self._times_begun += 1
                log.warning(
                    "%s was deleted or moved during the run, with all steps logged so far; "
                    "further steps are written to %s",
                    lost.path,
                    self._file.path,
                )
        return self._times_begun

    def add(self, summary: list[bytes], step: int, wall_time: float) -> None:
        """Append one serialized Summary, given in parts.

        Raises:
            WriteError: The Summary could not be written completely (for example, the disk is full).
                The file ends after the last complete record and can be appended to again.
        """
        event = event_pb2.Event(wall_time=wall_time, step=step).SerializeToString()
        contents = framing.field(event_pb2.Event.SUMMARY_FIELD_NUMBER, *summary)
        record = framing.frame(event, *contents)
        with self._lock:
            self._append(record, step)

    def close(self, prefix: str | None = None) -> None:
        """Release the file and the prefix; it is closed when its last user has released it."""
        with _LOCK:
            if prefix is not None:
                self._prefixes.discard(prefix)
            self._users -= 1
            if self._users == 0:
                if _OPEN.get(self._key) is self:
                    del _OPEN[self._key]
                self._file.close()

    def _append(self, record: list[bytes], step: int) -> None:
        """Append a record of a step; the file's first one follows the START of the run.

        At the second START in a run, TensorBoard's Python loader discards what an earlier process
        logged from its step on. The first has no effect, so every file can have one.
        """
        if self._is_started:
            self._file.append(record)
            return
        first = self._start_step or step
        self._name_rerun(first)
        begun = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        event = event_pb2.Event(wall_time=time.time(), step=first, session_log=begun)
        start = framing.frame(event.SerializeToString())
        self._file.append([*start, *record])
        self._is_started = True

    def _name_rerun(self, first: int) -> None:
        """Warn before TensorBoard hides steps of an earlier run, unless ``start_step`` says so."""
        if self._is_rerun_named or self._start_step:
            return
        self._is_rerun_named = True
        last = self._last_step()
        if last >= first:
            log.warning(
                "%s",
                f"{self._directory} holds an earlier run, up to step {last}: from step "
                f"{first} on, TensorBoard shows this run instead (the earlier event files "
                "stay there); to keep both, log into another directory; to continue the "
                f"earlier run, begin at step {last + 1} (start_step={last + 1} in Python, "
                f"--step {last + 1} on the command line)",
            )

    def _last_step(self) -> int:
        """The last step of an earlier run, or -1; of a remote run only the last object is read."""
        directory = self._directory
        names = [name for name in sorted(_event_files(directory)) if MARKER in name]
        if isinstance(directory, RemoteDirectory):
            for name in reversed(names):
                steps = shown_steps([io.BytesIO(directory.read(name))])
                if steps:
                    return max(steps)
            return -1
        try:
            steps = shown_steps((directory / name).open("rb") for name in names)
        except OSError:
            return -1  # what cannot be read is not shown
        return max(steps, default=-1)

    def _new_file(self) -> LocalFile | RemoteFile:
        """A new file that contains its first record."""
        version = event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2")
        head = framing.frame(version.SerializeToString())
        if isinstance(self._directory, Path):
            return LocalFile(self._directory, self._suffix, head)
        return RemoteFile(self._directory, partial(_file_name, self._suffix), head)


_ANOTHER_PROCESS = "process"
_SAME_PREFIX = "prefix"
_APART = {
    _ANOTHER_PROCESS: (
        "{0}: another process is writing to it, so that this one writes to {1}; give each "
        "process its own log_dir"
    ),
    _SAME_PREFIX: (
        "{0}: another open logger writes to it under the same name, so that this one writes "
        "to {1}; for both in one run, give each its own name=; to use the directory again, "
        "close the other logger first (board.close())"
    ),
}
"""Reason -> warning; its fields are the directory that was asked for and the one that is used."""


def _open_file(directory: Path | RemoteDirectory) -> EventFile | None:
    """The file that this process has open in a directory."""
    found = _OPEN.get(_key(directory))
    if found is None or found._process != os.getpid():
        return None
    # The directory may have been deleted, for example by re-running a notebook cell.
    return None if found._file.is_gone() else found


def _taken_by(directory: Path | RemoteDirectory, prefix: str | None) -> str:
    """Why a writer with this prefix may not use a directory; empty if it may."""
    opened = _open_file(directory)
    if opened is not None:
        return _SAME_PREFIX if prefix in opened._prefixes else ""
    return _ANOTHER_PROCESS if _has_writer_elsewhere(directory) else ""


def _key(directory: Path | RemoteDirectory) -> Path | str:
    return directory.resolve() if isinstance(directory, Path) else directory.url


def shown_steps(files: Iterable[BinaryIO]) -> set[int]:
    """The steps of a run that its readers show: a resumed run replaces those from its start on.

    Reads a few bytes per record, unverified, up to where a file is cut off or damaged.

    Args:
        files: the run's event files, in the order in which they were written.

    Raises:
        OSError: a file cannot be read.
    """
    steps: set[int] = set()
    for file in files:
        with file, contextlib.suppress(framing.Damaged):
            for _, size in framing.records(file):
                head = _HEAD.match(file.read(min(size, _HEAD_BYTES)))
                if head is None:
                    continue
                number, tag = head.groups()
                step = _varint(number or b"")
                if tag == _SESSION_LOG:
                    steps = {earlier for earlier in steps if earlier < step}
                else:
                    steps.add(step)
    return steps


def _varint(data: bytes) -> int:
    """The number that a protocol buffer stores in these bytes, the lowest seven bits first."""
    value = 0
    for index, byte in enumerate(data):
        value |= (byte & ~_CONTINUES) << (7 * index)
    return value


def has_foreign_events(directory: Path | RemoteDirectory) -> bool:
    """True if the directory holds another writer's event files, such as a SummaryWriter's."""
    return any(MARKER not in name for name in _event_files(directory))


def has_own_events(directory: Path | RemoteDirectory) -> bool:
    """True if the directory holds event files of fmapboard."""
    return any(MARKER in name for name in _event_files(directory))


def _event_files(directory: Path | RemoteDirectory) -> list[str]:
    names = []
    if isinstance(directory, RemoteDirectory):
        names = directory.names()
    elif directory.is_dir():
        names = [path.name for path in directory.iterdir()]
    return [name for name in names if "tfevents" in name]


_last_stamp = 0
"""ns, in the name of the file that this process has begun last."""


def _file_name(suffix: str) -> str:
    """A name that no other file has, and that sorts behind those of earlier ones."""
    global _last_stamp
    # Within a tick of the clock, which takes 16 ms on Windows, several files may be begun.
    _last_stamp = max(time.time_ns(), _last_stamp + 1)
    stamp = f"{_last_stamp // 10**9}.{socket.gethostname()}.{os.getpid()}.{_last_stamp}"
    return f"events.out.tfevents.{stamp}{MARKER}{suffix}"
