"""The runs below a directory, read without TensorBoard, at all logged steps, while they grow."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from fmapboard.plugin.log_ends import LogEnds
from fmapboard.runs.find import entries, event_files, folders, is_inside, outside
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files

_EVERY = 1.0
"""Time in s between two looks for new runs and records."""
_SHARE = 0.05
"""Part of the time that may go into looking for new runs, which takes long in a large tree."""
_FIRST = 1.0
"""Time in s for which the first answer waits for runs."""
_IDLE = 60.0
"""Time in s after the last question for which new records are looked for."""
_CHUNK = 100
"""Records that are read of a run before the next one's turn."""
_CACHE = 24 * 2**20
"""Bytes of parsed records to cache."""


class FollowedRuns(Files):
    """A provider over the runs below a directory, which `look` reads on; thread-safe.

    Nothing outside of the directory is read: symbolic links that lead out of it are left out.

    Args:
        root: the directory.
        say: is called once for each thing that cannot be read, in words.
    """

    def __init__(self, root: Path, say: Callable[[str], object] = print) -> None:
        super().__init__({}, _CACHE)
        self._root = os.path.realpath(root)
        self._say = say
        self._said: set[str] = set()
        self._behind: set[str] = set()
        self._inside: dict[str, tuple[int, int]] = {}
        self._ends = LogEnds([("", self._root)])
        self._asked = threading.Event()
        self._looked = threading.Event()
        self._ended = threading.Event()
        self._asked_at = time.monotonic()
        self._list_after = self._asked_at

    def ask(self) -> None:
        """Say that somebody asks: `follow` looks for new records for a while."""
        self._asked_at = time.monotonic()
        self._asked.set()

    def close(self) -> None:
        """End `follow`."""
        self._ended.set()
        self._asked.set()

    def follow(self) -> None:
        """Look for new runs and records while somebody asks, until `close` is called."""
        while not self._ended.is_set():
            if self.look():
                continue
            if time.monotonic() - self._asked_at > _IDLE:
                self._asked.clear()
                self._asked.wait()
            else:
                self._ended.wait(_EVERY)

    def runs(self) -> dict[str, tuple[float | None, list[str]]]:
        """See `Provider`; waits a little for the first look."""
        self._looked.wait(_FIRST)
        return super().runs()

    def look(self) -> bool:
        """Read what is new, of many records a part.

        Returns:
            True if there is more to read.
        """
        before = time.monotonic()
        if before >= self._list_after:
            self.list_runs()
            after = time.monotonic()
            self._list_after = after + max(_EVERY, (after - before) / _SHARE)
        behind = set()
        for run, log in self._logs.items():
            try:
                files = event_files(entries(log.path))
            except OSError:  # the run was deleted
                files = []
            if log.read_on(files, _CHUNK):
                behind.add(run)
        self._behind = behind
        self._looked.set()
        return bool(behind)

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """See `Provider`."""
        return self._ends.unread(run, tag, read) if run in self._behind else None

    def list_runs(self) -> None:
        """Look for the run directories; those that are gone are forgotten."""
        errors: list[OSError] = []
        logs = {}
        for folder, inside in folders(self._root, errors, within=self._root):
            if event_files(inside):
                name = os.path.relpath(folder, self._root).replace(os.sep, "/")
                run = os.fsencode(name).decode(errors="replace")
                log = self._logs.get(run)
                if log is None:
                    log = EventLog(Path(folder), open_file=self._open, waits=True)
                logs[run] = log
        self._logs = logs
        for error in errors:
            text = f"{error.filename}: {error.strerror}"
            if text not in self._said:
                self._said.add(text)
                self._say(f"left out: {text}")

    def _open(self, path: str) -> BinaryIO:
        """Open an event file, unless it leads out of the directory."""
        opened = open(path, "rb")  # noqa: SIM115  # the caller closes it
        place = _place(os.fstat(opened.fileno()))
        if self._inside.get(path) != place:  # not the file that was seen to be inside
            real = os.path.realpath(path)
            if not is_inside(real, self._root) or _place(os.stat(real)) != place:
                opened.close()
                raise outside(path)
            self._inside[path] = place
        return opened


def _place(status: os.stat_result) -> tuple[int, int]:
    """What tells a file from all others."""
    return status.st_dev, status.st_ino
