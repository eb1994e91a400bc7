"""An index of one run's event files: where each value is, without keeping pictures in memory."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorboard import data_compat
from tensorboard.compat.proto import event_pb2

from fmapboard.writers.event_records import StoredEvent, array_of, stored_events

_CACHE = 192 * 2**20
"""Bytes of parsed events to keep: one logged step is one event."""
SCALARS = "scalars"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event is stored."""

    file: Path
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Datum:
    """One step of a series.

    Attributes:
        step: number of the step.
        wall_time: s.
        place: the event that holds the value.
        index: of the value in the event's summary.
        blobs: how many strings the value has.
        number: the value of a scalar; NaN for all others.
    """

    step: int
    wall_time: float
    place: Place
    index: int
    blobs: int
    number: float


@dataclass(slots=True)
class TagSeries:
    """The values of one tag, in the order in which they were written; one per step."""

    plugin: str
    data: dict[int, Datum] = field(default_factory=dict)

    def ordered(self) -> list[Datum]:
        """The values, ascending by step."""
        return sorted(self.data.values(), key=lambda datum: datum.step)


class EventLog:
    """The event files of a run directory, read once; values are read again when they are needed.

    As TensorBoard does, a resumed run replaces the steps from its first one on, and of two values
    of a tag at one step the first counts.

    Args:
        path: the run directory.

    Attributes:
        series: by tag.
        started: wall time of the first event, s; None if there is no event.
        problems: what could not be read, in words.

    Raises:
        OSError: the directory cannot be listed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.series: dict[str, TagSeries] = {}
        self.started: float | None = None
        self.problems: list[str] = []
        self._events: OrderedDict[Place, Any] = OrderedDict()
        self._held = 0
        for stored in stored_events(path, self.problems):
            self._read(stored)

    def strings(self, datum: Datum) -> list[bytes]:
        """The blobs of a value."""
        return list(self._value(datum).tensor.string_val)

    def array(self, datum: Datum) -> Any:
        """The value as an array; None if it is none."""
        try:
            return array_of(self._value(datum).tensor)
        except (TypeError, ValueError):
            return None

    def keep(self, steps: Callable[[str, TagSeries], set[int] | None]) -> None:
        """Drop the steps of each series that are not among those that ``steps`` returns for it."""
        for tag, series in self.series.items():
            kept = steps(tag, series)
            if kept is not None:
                series.data = {step: d for step, d in series.data.items() if step in kept}

    def _read(self, stored: StoredEvent) -> None:
        event = stored.event
        if self.started is None:
            self.started = event.wall_time
        if event.session_log.status == event_pb2.SessionLog.START:
            self._purge(event.step)
        place = Place(stored.file, stored.offset, stored.length)
        for index, value in enumerate(event.summary.value):
            self._add(event, place, index, value)

    def _purge(self, start: int) -> None:
        for series in self.series.values():
            series.data = {step: d for step, d in series.data.items() if step < start}

    def _add(self, event: Any, place: Place, index: int, value: Any) -> None:
        series = self.series.get(value.tag)
        is_number = value.HasField("simple_value")
        if series is None:
            plugin = SCALARS if is_number else _migrated(value).metadata.plugin_data.plugin_name
            series = self.series[value.tag] = TagSeries(plugin)
        if event.step in series.data:
            return
        number = float(value.simple_value) if is_number else math.nan
        count = len(value.tensor.string_val)
        wall_time = event.wall_time
        series.data[event.step] = Datum(event.step, wall_time, place, index, count, number)

    def _value(self, datum: Datum) -> Any:
        return _migrated(self._event(datum.place).summary.value[datum.index])

    def _event(self, place: Place) -> Any:
        """The event at a place; those that were asked for last are kept."""
        event = self._events.pop(place, None)
        if event is None:
            with place.file.open("rb") as opened:
                opened.seek(place.offset)
                event = event_pb2.Event.FromString(opened.read(place.length))
            self._held += place.length
        self._events[place] = event
        while self._held > _CACHE and len(self._events) > 1:
            oldest, _ = self._events.popitem(last=False)
            self._held -= oldest.length
        return event


def _migrated(value: Any) -> Any:
    """The value in the format that has tensors only."""
    return data_compat.migrate_value(value)
