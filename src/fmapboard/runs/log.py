"""The event files of a run, indexed in memory; values are read when they are needed."""

from __future__ import annotations

import math
import os
import struct
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from fmapboard.formats import framing
from fmapboard.runs import events
from fmapboard.runs.find import entries, event_files

_Test: TypeAlias = Callable[[str], bool] | None
_Steps: TypeAlias = Collection[int] | None
_LEAST = 256
"""Size in bytes of records that are skipped by their step; a scalar has about 50."""
_ROW = struct.Struct("<IIIIf?")
"""What is kept of a value: its event, its tensor's place and end there, blobs, number."""


def _open(path: str) -> BinaryIO:
    return open(path, "rb")


class Datum(NamedTuple):
    """One step of a series.

    Attributes:
        step: number of the step.
        wall_time: s.
        file: that the value's tensor is in.
        tensor: where in the file it begins and ends; empty for a scalar.
        blobs: number of strings in the tensor.
        number: the value of a scalar; None for all others.
    """

    step: int
    wall_time: float
    file: str
    tensor: events.Span
    blobs: int
    number: float | None


class _Events:
    """The events of a log, by number: a value keeps only the number of its event."""

    def __init__(self) -> None:
        self.wall_times = array("d")
        self.offsets = array("Q")
        self.files = array("I")
        self.paths: list[str] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, wall_time: float, path: str, offset: int) -> None:
        """Add an event; its number is that of the events before it."""
        if not self.paths or self.paths[-1] != path:
            self.paths.append(path)
        self.wall_times.append(wall_time)
        self.offsets.append(offset)
        self.files.append(len(self.paths) - 1)


class TagSeries:
    """The values of one tag, ascending by step; one per step. They take 30 bytes each.

    Attributes:
        plugin: name of the plugin that the values belong to.
        steps: their steps.
    """

    __slots__ = ("_events", "_rows", "plugin", "steps")

    def __init__(self, plugin: str, events_of_log: _Events) -> None:
        self.plugin = plugin
        self.steps = array("q")
        self._rows = bytearray()
        self._events = events_of_log

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> Datum:
        """The value at a place, counted from the end if it is negative."""
        step = self.steps[place]
        start = place % len(self.steps) * _ROW.size
        event, begin, end, blobs, number, is_number = _ROW.unpack_from(self._rows, start)
        offset = self._events.offsets[event]
        return Datum(
            step=step,
            wall_time=self._events.wall_times[event],
            file=self._events.paths[self._events.files[event]],
            tensor=(offset + begin, offset + end),
            blobs=blobs,
            number=number if is_number else None,
        )

    def at(self, step: int) -> Datum | None:
        """The value at a step; None if there is none."""
        place = bisect_left(self.steps, step)
        is_there = place < len(self.steps) and self.steps[place] == step
        return self[place] if is_there else None

    def ordered(self) -> list[Datum]:
        """The values, ascending by step."""
        return [self[place] for place in range(len(self))]

    def outlines(self) -> Iterator[tuple[int, float, int]]:
        """Step, wall time in s and number of blobs of each value, ascending by step."""
        times = self._events.wall_times
        rows = _ROW.iter_unpack(self._rows)
        for step, (event, _, _, blobs, _, _) in zip(self.steps, rows, strict=True):
            yield step, times[event], blobs

    def add(self, step: int, row: bytes) -> None:
        """Add a value, packed as `_ROW`, if there is none at its step."""
        steps = self.steps
        if not steps or step > steps[-1]:
            steps.append(step)
            self._rows += row
            return
        place = bisect_left(steps, step)
        if steps[place] == step:
            return
        steps.insert(place, step)
        start = place * _ROW.size
        self._rows[start:start] = row

    def cut(self, step: int) -> None:
        """Drop the steps from this one on."""
        place = bisect_left(self.steps, step)
        del self.steps[place:]
        del self._rows[place * _ROW.size :]

    def keep(self, steps: set[int]) -> None:
        """Drop all other steps."""
        rows = bytearray()
        kept = array("q")
        for place, step in enumerate(self.steps):
            if step in steps:
                kept.append(step)
                rows += self._rows[place * _ROW.size : (place + 1) * _ROW.size]
        self.steps = kept
        self._rows = rows


@dataclass(slots=True)
class _File:
    """An event file, as far as it is read.

    Attributes:
        end: bytes that are read.
        inode: what tells it from another file of the same name; 0 if it could not be opened.
        damaged: the records that could not be read, in words.
        problem: why it is not read further, in words; "" if it is read to its end.
    """

    end: int = 0
    inode: int = 0
    damaged: list[str] = field(default_factory=list)
    problem: str = ""


class EventLog:
    """The event files of a run directory, in the order in which they were begun.

    A file is read up to its end, or to where it is cut off or damaged. As TensorBoard does, a
    resumed run replaces the steps from its first one on, and of two values of a tag at one step the
    first counts.

    Args:
        path: the run directory.
        is_read: for a tag, True if its series is asked for; None to read all.
        steps: the steps to read, of records of 256 bytes or more; None for all.
        open_file: opens an event file; it may refuse to with an OSError.
        waits: True to read nothing before `read_on` is called.

    Attributes:
        series: by tag; while another thread calls `read_on`, it is read with `lock` held.
        started: wall time of the first event, s; None if there is no event.
        lock: held while an event is added.

    Raises:
        OSError: the directory cannot be listed.
    """

    def __init__(
        self,
        path: Path,
        is_read: _Test = None,
        steps: _Steps = None,
        *,
        open_file: Callable[[str], BinaryIO] = _open,
        waits: bool = False,
    ) -> None:
        self.path = path
        self.series: dict[str, TagSeries] = {}
        self.started: float | None = None
        self.lock = threading.Lock()
        self._events = _Events()
        self._files: dict[str, _File] = {}
        self._is_read = is_read
        self._steps = steps
        self._known: dict[bytes, str | None] = {}
        self._open = open_file
        if not waits:
            self.read_on(event_files(entries(path)))

    @property
    def problems(self) -> list[str]:
        """What could not be read, in words."""
        found = []
        for file in self._files.values():
            found += file.damaged
            if file.problem:
                found.append(file.problem)
        return found

    def read_on(self, files: Collection[str], most: float = math.inf) -> bool:
        """Read what was written since the last call; all again if a file was replaced or removed.

        Args:
            files: the event files, in the order in which they were begun.
            most: so many records are read at most.

        Returns:
            True if more may be there to read now.
        """
        if self._is_replaced(files):
            with self.lock:
                self.series = {}
                self.started = None
                self._events = _Events()
                self._files = {}
        left = most
        for path in files:
            left -= self._read(path, left)
            if left <= 0:
                return True
        return False

    def strings(self, datum: Datum) -> list[bytes]:
        """The blobs of a value; empty if they can no longer be read."""
        try:
            tensor = self._content(datum)
            spans = events.strings(tensor, (0, len(tensor)))
        except (OSError, ValueError):
            return []
        return [tensor[start:end] for start, end in spans]

    def array(self, datum: Datum) -> Any:
        """The value as an array; None if it is none whose numbers are stored as bytes."""
        try:
            return events.array(self._content(datum))
        except (OSError, ValueError):
            return None

    def _is_replaced(self, files: Collection[str]) -> bool:
        """True if a file that was read is gone, is another one now, or is shorter."""
        for path, file in self._files.items():
            if path not in files:
                return True
            try:
                status = os.stat(path)
            except OSError:
                return True
            is_other = file.inode != 0 and status.st_ino != file.inode
            if is_other or status.st_size < file.end:
                return True
        return False

    def _read(self, path: str, most: float) -> int:
        """Read on in a file, and return the number of records that were read."""
        name = Path(path).name
        file = self._files.setdefault(path, _File())
        file.problem = ""
        count = 0
        limit = None if math.isinf(most) else int(most)
        try:
            with self._open(path) as opened:
                status = os.fstat(opened.fileno())
                file.inode = status.st_ino
                if 0 < file.end == status.st_size:  # nothing is new
                    return 0
                opened.seek(file.end)
                for offset, size in islice(framing.records(opened), limit):
                    count += 1
                    file.end = offset + size + framing.FOOTER_BYTES
                    if self._steps and size >= _LEAST:  # smaller ones may begin a run
                        beginning = opened.read(events.STAMP)
                        _, step = events.stamp(beginning)
                        if step not in self._steps:
                            continue
                        opened.seek(offset)
                    content = opened.read(size)
                    checksum = opened.read(framing.FOOTER_BYTES)
                    try:
                        if framing.checksum(content) != checksum:
                            raise ValueError("wrong checksum")
                        self._add(content, path, offset)
                    except ValueError as error:
                        damage = f"a record of {size} bytes is damaged ({error})"
                        file.damaged.append(f"{name}: {damage}")
        except framing.Damaged as error:
            file.problem = f"{name} {error}"
        except OSError as error:
            file.problem = f"{name} cannot be read: {error.strerror or error}"
        return count

    def _add(self, content: bytes, path: str, offset: int) -> None:
        """Add the values of an event, which begins at an offset of a file."""
        event = events.parse(content)
        number = len(self._events)  # of this event
        found: list[tuple[str, str, bytes]] = []  # all are parsed before any is added
        for tag, name, span in self._of(event, content):
            scalar = events.scalar_of(content, span, tag)
            if scalar is not None:
                row = _ROW.pack(number, 0, 0, 0, scalar, True)
                found.append((name, events.SCALARS, row))
                continue
            value = events.read_value(content, span)
            count = len(events.strings(content, value.tensor))
            is_number = value.number is not None
            row = _ROW.pack(number, *value.tensor, count, value.number or 0.0, is_number)
            found.append((name, value.plugin, row))
        with self.lock:
            if self.started is None:
                self.started = event.wall_time
            if event.is_start:
                for series in self.series.values():
                    series.cut(event.step)
            if not found:
                return
            self._events.add(event.wall_time, path, offset)
            for name, plugin, row in found:
                if name not in self.series:
                    self.series[name] = TagSeries(plugin, self._events)
                self.series[name].add(event.step, row)

    def _of(self, event: events.Event, content: bytes) -> Iterator[tuple[bytes, str, events.Span]]:
        """The tags that are read, also as text, and where the values are that have them."""
        for span in event.values:
            tag = events.tag_of(content, span)
            if tag not in self._known:
                name = tag.decode()
                is_read = self._is_read is None or self._is_read(name)
                self._known[tag] = name if is_read else None
            known = self._known[tag]
            if known is not None:
                yield tag, known, span

    def _content(self, datum: Datum) -> bytes:
        """The serialized tensor of a value."""
        start, end = datum.tensor
        with self._open(datum.file) as opened:
            opened.seek(start)
            return opened.read(end - start)
