"""Events in a run's files: the newest one that TensorBoard has not read, and blobs of others."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO

from fmapboard.formats.framing import FOOTER_BYTES, Damaged, records
from fmapboard.runs import events
from fmapboard.runs.find import entries, event_files
from fmapboard.runs.provider import Cache, Point

_LAG = 10.0
"""Time in s for which a new record may be unread: TensorBoard looks for new ones every 5 s."""
_RECORDS = 20_000
"""Maximum number of records that one call reads the beginnings of."""
_LAST, _KNOWN = 16, 2**14
"""Records at the end of a file among which the newest one of a series is looked for, and those
that are remembered."""
_LEAST, _MOST = 256, 2**26
"""Size in bytes of the records that are searched; a scalar has about 50."""
_FILE, _EACH, _REMEMBERED = 3000, 250, 32 * 2**20
"""Bytes in memory of what is known of a file, and of a record or value in it, roughly; and of all
files together."""
_MANY = 4
"""Blobs of an event from which on the file is read: TensorBoard's data server takes a call each."""


@dataclass(frozen=True, slots=True)
class _Record:
    """An event: its place in the file, wall time in s, and step."""

    offset: int
    length: int
    wall_time: float
    step: int


@dataclass(slots=True)
class _File:
    """How far a file has been gone through, and its last records."""

    end: int = 0
    last: deque[_Record] = field(default_factory=lambda: deque(maxlen=_KNOWN))


Logdirs = Iterable[tuple[str, str]]
"""Log directories, each after the name that its runs begin with, or "" for none."""


class LogEnds:
    """Finds records in the event files of local log directories; thread-safe.

    Only the beginnings of records are read, each once, and those that are asked for completely.

    Args:
        logdirs: the directories, as given to TensorBoard; nothing is found in a remote one.
    """

    def __init__(self, logdirs: Logdirs = ()) -> None:
        local = [(name, path) for name, path in logdirs if path and "://" not in path]
        self._logdirs = [(name, os.path.expanduser(path)) for name, path in local]
        self._files, self._places = Cache(_REMEMBERED), Cache(_REMEMBERED)
        self._lock = threading.Lock()

    def folder(self, run: str) -> str | None:
        """The local directory of a run; None if it has none, or if several have its name."""
        folders = {folder for at in self._logdirs if (folder := _folder(run, *at)) is not None}
        return folders.pop() if len(folders) == 1 else None

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """The newest step of a series that is in the files, but not among what was read.

        Args:
            run: name of the run: its directory relative to the log directory, after the name of
                that directory, if it has one.
            tag: tag of the series.
            read: wall time of the newest step of the series that TensorBoard has read, s.

        Returns:
            The step; None if there is none, or if it is not known because the files are remote,
            cannot be read, or have very many records, or because two directories have a run of this
            name. A record of the last 10 s does not count.
        """
        before, last = time.time() - _LAG, list[tuple[str, _Record]]()
        with contextlib.suppress(OSError, ValueError):
            for path, known, is_whole in self._files_of(run):
                last += [(path, record) for record in known[-_LAST:] if is_whole]
            for path, record in sorted(last, key=lambda one: one[1].wall_time, reverse=True):
                is_new = read < record.wall_time <= before
                if is_new and tag.encode() in self._values(path, record):
                    return record.step
        return None

    def fill(self, found: list[bytes | None], requested: Sequence[tuple[Point, int]]) -> None:
        """Read blobs from local files, which is faster than to ask TensorBoard's data server.

        Args:
            found: the requested blobs as far as they are known; those that are None are filled in
                where many of one event are missing, if the event is found.
            requested: as for `Provider.blobs`.
        """
        asked: dict[tuple[str, int, float], list[int]] = {}
        for i, (point, _) in enumerate(requested):
            if found[i] is None:
                asked.setdefault((point.run, point.step, point.wall_time), []).append(i)
        many = {key: places for key, places in asked.items() if len(places) >= _MANY}
        with contextlib.suppress(OSError, ValueError):
            for run in {run for run, *_ in many}:
                for path, known, _ in self._files_of(run):
                    for record in known:
                        for i in many.get((run, record.step, record.wall_time), ()):
                            found[i] = found[i] or self._blob(path, record, *requested[i])

    def _blob(self, path: str, record: _Record, point: Point, index: int) -> bytes | None:
        """A blob in an event; None if it is not there, or if the file was replaced."""
        tag = point.tag.encode()
        value = _read(path, *self._values(path, record).get(tag, (0, 0)))
        whole = 0, len(value)
        if events.tag_of(value, whole) != tag:
            return None
        blobs = events.strings(value, events.read_value(value, whole).tensor)
        return value[slice(*blobs[index])] if index < len(blobs) else None

    def _values(self, path: str, record: _Record) -> Mapping[bytes, events.Span]:
        """Where the larger values of an event are in its file, by tag."""
        known: dict[bytes, events.Span] | None = self._places.get((path, record.offset))
        if known is None:
            at, known = record.offset, {}
            content = _read(path, at, at + record.length)
            for start, end in events.parse(content).values:
                if end - start >= _LEAST:
                    tag = events.tag_of(content, (start, end))
                    known.setdefault(tag, (at + start, at + end))
            self._places.put((path, at), known, _EACH * len(known))
        return known

    def _files_of(self, run: str) -> list[tuple[str, list[_Record], bool]]:
        """Path and records of each event file of a run; True if these go up to its end.

        The beginnings of further records are read.
        """
        folder, found = self.folder(run), []
        with self._lock:
            for path in [] if folder is None else event_files(entries(folder)):
                with open(path, "rb", buffering=0) as opened:
                    known: _File | None = self._files.get(path)
                    if known is None or os.fstat(opened.fileno()).st_size < known.end:
                        known = _File()  # it is new, or was replaced
                    is_whole = _go_on(opened, known)
                self._files.put(path, known, _FILE + _EACH * len(known.last))
                found.append((path, list(known.last), is_whole))
        return found


def _read(path: str, start: int, end: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        return file.read(end - start)


def _folder(run: str, name: str, logdir: str) -> str | None:
    """The directory of a run below a log directory; None if there is none."""
    if name and run != name and not run.startswith(f"{name}/"):
        return None
    folder = os.path.normpath(os.path.join(logdir, run[len(name) + 1 :] if name else run))
    return folder if os.path.isdir(folder) else None


def _go_on(file: BinaryIO, known: _File) -> bool:
    """Read the beginnings of further records; False if there are too many for one call."""
    count = 0
    file.seek(known.end)
    try:
        for offset, size in islice(records(file), _RECORDS):
            count += 1
            known.end = offset + size + FOOTER_BYTES
            if _LEAST <= size <= _MOST:
                known.last.append(_Record(offset, size, *events.stamp(file.read(events.STAMP))))
    except Damaged:  # or not completely written yet
        pass
    return count < _RECORDS
