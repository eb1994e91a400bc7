"""What local event files hold, for what TensorBoard has not read or would read slowly."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from fmapboard.formats.framing import FOOTER_BYTES, Damaged, records
from fmapboard.runs import events
from fmapboard.runs.find import entries, event_files
from fmapboard.runs.provider import Cache, Point

_LAG = 10.0
"""Time in s for which a new record may be unread: TensorBoard looks for new ones every 5 s."""
_RECORDS = 20_000
"""Maximum number of records that one call reads the beginnings of."""
_LAST = 16
"""Records at the end of a file among which the newest one of a series is looked for."""
_KNOWN = 2**14
"""Records at the end of a file that are remembered."""
_LEAST = 256
"""Minimum size in bytes of the records and values that are searched; a scalar has about 50."""
_MOST = 2**26
"""Maximum size in bytes of the records that are searched."""
_FILE = 3000
"""Bytes in memory of what is known of a file, roughly, without its records."""
_EACH = 250
"""Bytes in memory per remembered record or value, roughly."""
_REMEMBERED = 32 * 2**20
"""Bytes in memory of what is known of all files together."""
_MANY = 4
"""Blobs of an event from which on the file is read: TensorBoard's data server takes a call each."""


class _Record(NamedTuple):
    """An event: its place in the file, wall time in s, and step."""

    offset: int
    length: int
    wall_time: float
    step: int


class _EventFile(NamedTuple):
    """How far an event file has been gone through, and its last records.

    Attributes:
        path: of the file.
        end: bytes that have been gone through.
        records: the last ones of those that are searched.
        is_whole: False if further records are left for the next call.
    """

    path: str
    end: int = 0
    records: Sequence[_Record] = ()
    is_whole: bool = False


Logdirs = Iterable[tuple[str, str]]
"""Log directories, each after the name that its runs begin with, or "" for none."""


class LogEnds:
    """Finds records in the event files of local log directories; thread-safe.

    Only the beginnings of records are read, each once, and those that are asked for completely.

    Args:
        logdirs: the directories, as given to TensorBoard; nothing is found in a remote one.
    """

    def __init__(self, logdirs: Logdirs) -> None:
        self._logdirs = []
        for name, path in logdirs:
            if "://" not in path:
                self._logdirs.append((name, os.path.expanduser(path)))
        self._files = Cache(_REMEMBERED)
        self._places = Cache(_REMEMBERED)
        self._lock = threading.Lock()

    def folder(self, run: str) -> str | None:
        """The local directory of a run; None if it has none, or if several have its name."""
        found = set()
        for name, logdir in self._logdirs:
            if name and run != name and not run.startswith(f"{name}/"):
                continue
            below_logdir = run[len(name) + 1 :] if name else run
            folder = os.path.normpath(os.path.join(logdir, below_logdir))
            if os.path.isdir(folder):
                found.add(folder)
        return found.pop() if len(found) == 1 else None

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
        before = time.time() - _LAG
        searched: list[tuple[float, str, _Record]] = []
        with contextlib.suppress(OSError, ValueError):
            for file in self._files_of(run):
                last = file.records[-_LAST:] if file.is_whole else ()
                searched += [(record.wall_time, file.path, record) for record in last]
            searched.sort(key=itemgetter(0), reverse=True)
            for wall_time, path, record in searched:
                if not read < wall_time <= before:
                    continue
                if tag.encode() in self._values(path, record):
                    return record.step
        return None

    def fill(self, found: list[bytes | None], requested: Sequence[tuple[Point, int]]) -> None:
        """Read blobs from local files, which is faster than to ask TensorBoard's data server.

        Args:
            found: the requested blobs as far as they are known; those that are None are filled in
                where many of one event are missing, if the event is found.
            requested: as for `Provider.blobs`.
        """
        missing = defaultdict[tuple[str, int, float], list[int]](list)
        for i, (point, _) in enumerate(requested):
            if found[i] is None:
                missing[point.run, point.step, point.wall_time].append(i)
        many = {event: places for event, places in missing.items() if len(places) >= _MANY}
        runs = {run for run, _, _ in many}
        with contextlib.suppress(OSError, ValueError):
            for run in runs:
                for file in self._files_of(run):
                    for record in file.records:
                        event = (run, record.step, record.wall_time)
                        for i in many.get(event, ()):
                            point, index = requested[i]
                            found[i] = found[i] or self._blob(file.path, record, point, index)

    def _blob(self, path: str, record: _Record, point: Point, index: int) -> bytes | None:
        """A blob in an event; None if it is not there, or if the file was replaced."""
        tag = point.tag.encode()
        values = self._values(path, record)
        start, end = values.get(tag, (0, 0))
        value = _read(path, start, end)  # empty if the event has no such tag
        whole = (0, len(value))
        if events.tag_of(value, whole) != tag:
            return None
        tensor = events.read_value(value, whole).tensor
        blobs = events.strings(value, tensor)
        if index >= len(blobs):
            return None
        start, end = blobs[index]
        return value[start:end]

    def _values(self, path: str, record: _Record) -> Mapping[bytes, events.Span]:
        """Where the larger values of an event are in its file, by tag."""
        offset = record.offset
        known: Mapping[bytes, events.Span] | None = self._places.get((path, offset))
        if known is not None:
            return known
        places: dict[bytes, events.Span] = {}
        content = _read(path, offset, offset + record.length)
        for start, end in events.parse(content).values:
            if end - start >= _LEAST:
                tag = events.tag_of(content, (start, end))
                places.setdefault(tag, (offset + start, offset + end))
        self._places.put((path, offset), places, _EACH * len(places))
        return places

    def _files_of(self, run: str) -> list[_EventFile]:
        """The event files of a run, with the beginnings of further records."""
        folder = self.folder(run)
        if folder is None:
            return []
        found = []
        with self._lock:
            for path in event_files(entries(folder)):
                known = self._files.get(path) or _EventFile(path)
                file = _read_on(known)
                self._files.put(path, file, _FILE + _EACH * len(file.records))
                found.append(file)
        return found


def _read(path: str, start: int, end: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        return file.read(end - start)


def _read_on(known: _EventFile) -> _EventFile:
    """Read the beginnings of further records; of a file that was replaced, those of all."""
    count = 0
    with open(known.path, "rb", buffering=0) as opened:
        size = os.fstat(opened.fileno()).st_size
        if size < known.end:
            known = _EventFile(known.path)
        end = known.end
        further = list[_Record]()
        opened.seek(end)
        try:
            for offset, length in islice(records(opened), _RECORDS):
                count += 1
                end = offset + length + FOOTER_BYTES
                if _LEAST <= length <= _MOST:
                    wall_time, step = events.stamp(opened.read(events.STAMP))
                    further.append(_Record(offset, length, wall_time, step))
        except Damaged:  # or not completely written yet
            pass
    last = [*known.records, *further][-_KNOWN:]
    return _EventFile(known.path, end, last, is_whole=count < _RECORDS)
