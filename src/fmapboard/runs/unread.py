"""What a run's event files hold that TensorBoard has not read yet."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO

from fmapboard.formats.framing import FOOTER_BYTES, Damaged, records
from fmapboard.runs import events
from fmapboard.runs.cache import Cache
from fmapboard.runs.find import entries, event_files

_LAG = 10.0
"""Time in s for which a new record may be unread: TensorBoard looks for new ones every 5 s."""
_RECORDS = 20_000
"""Maximum number of records that one call reads the beginnings of."""
_LAST = 16
"""Records at the end of a file among which the newest one of a series is looked for."""
_LEAST, _MOST = 256, 2**26
"""Size in bytes of the records that are searched; a scalar has about 50."""
_FILE, _REMEMBERED = 3000, 4 * 2**20
"""Bytes in memory of what is known of a file, roughly, and of all files together."""


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
    last: deque[_Record] = field(default_factory=lambda: deque(maxlen=_LAST))


Logdirs = Iterable[tuple[str, str]]
"""Log directories, each after the name that its runs begin with, or "" for none."""


class LogEnds:
    """Finds the newest records in the event files of local log directories; thread-safe.

    Only the beginnings of records are read, each once, and the last ones completely.

    Args:
        logdirs: the directories, as given to TensorBoard; nothing is found in a remote one.
    """

    def __init__(self, logdirs: Logdirs = ()) -> None:
        local = [(name, path) for name, path in logdirs if path and "://" not in path]
        self._logdirs = [(name, os.path.expanduser(path)) for name, path in local]
        self._files = Cache(_REMEMBERED)
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
        folder = self.folder(run)
        if folder is None:
            return None
        try:
            with self._lock:
                files = event_files(entries(folder))
                found = [self._newest(path, tag.encode(), read) for path in files]
        except (OSError, ValueError):
            return None
        newest = [record for record in found if record is not None]
        return max(newest, key=lambda record: record.wall_time).step if newest else None

    def _newest(self, path: str, tag: bytes, after: float) -> _Record | None:
        """The last record of a file that holds the series, if its time is after another."""
        before = time.time() - _LAG
        with open(path, "rb", buffering=0) as opened:
            known: _File | None = self._files.get(path)
            if known is None or os.fstat(opened.fileno()).st_size < known.end:  # it was replaced
                known = _File()
                self._files.put(path, known, _FILE)
            if not _go_on(opened, known):
                return None
            for record in reversed(known.last):
                if after < record.wall_time <= before:
                    opened.seek(record.offset)
                    content = opened.read(record.length) or b""
                    values = events.parse(content).values
                    if any(events.tag_of(content, value) == tag for value in values):
                        return record
        return None


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
