"""The event files of runs, indexed, and as the data provider that the tab's routes ask."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tensorboard import data_compat, errors
from tensorboard.compat.proto import event_pb2
from tensorboard.data import provider

from fmapboard.report.event_records import StoredEvent, array_of, stored_events

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


class LogProvider:
    """Answers the plugin's questions from the event files; see TensorBoard's ``DataProvider``.

    Args:
        logs: by name of the run.
    """

    def __init__(self, logs: Mapping[str, EventLog]) -> None:
        self._logs = logs

    def experiment_metadata(self, _: Any = None, *, experiment_id: str) -> Any:
        """Nothing is known of the experiment."""
        return provider.ExperimentMetadata(data_location="")

    def list_runs(self, _: Any = None, *, experiment_id: str) -> list[Any]:
        """The runs and when they were started."""
        return [
            provider.Run(run_id=name, run_name=name, start_time=log.started)
            for name, log in self._logs.items()
        ]

    def list_scalars(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> None."""
        return self._found(asked, lambda log, series: None)

    list_tensors = list_blob_sequences = list_scalars

    def read_scalars(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with a ``value``."""
        return self._found(asked, lambda log, series: [_scalar(d) for d in series.ordered()])

    def read_tensors(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with an array ``numpy``."""
        return self._found(
            asked,
            lambda log, series: [
                _tensor(datum, array)
                for datum in series.ordered()
                if (array := log.array(datum)) is not None
            ],
        )

    def read_blob_sequences(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with the keys of their blobs."""
        found: dict[str, dict[str, Any]] = {}
        for run, _log, tag, series in self._asked(asked):
            found.setdefault(run, {})[tag] = [_blobs(run, tag, d) for d in series.ordered()]
        return found

    def read_blob(self, _: Any = None, *, blob_key: str) -> bytes:
        """The blob of a key.

        Raises:
            NotFoundError: there is no such blob.
        """
        run, tag, step, index = json.loads(blob_key)
        try:
            log = self._logs[run]
            blob: bytes = log.strings(log.series[tag].data[step])[index]
        except LookupError as error:
            raise errors.NotFoundError(blob_key) from error
        return blob

    def _found(self, asked: Mapping[str, Any], of: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for run, log, tag, series in self._asked(asked):
            found.setdefault(run, {})[tag] = of(log, series)
        return found

    def _asked(self, asked: Mapping[str, Any]) -> Iterator[tuple[str, EventLog, str, TagSeries]]:
        plugin, chosen = asked["plugin_name"], asked.get("run_tag_filter")
        runs = None if chosen is None else chosen.runs
        tags = None if chosen is None or chosen.tags is None else set(chosen.tags)
        for run in self._logs if runs is None else runs:
            log = self._logs.get(run)
            if log is None:
                continue
            for tag, series in log.series.items():  # in the order in which TensorBoard lists them
                if series.plugin == plugin and series.data and (tags is None or tag in tags):
                    yield run, log, tag, series


def _scalar(datum: Datum) -> Any:
    return provider.ScalarDatum(step=datum.step, wall_time=datum.wall_time, value=datum.number)


def _tensor(datum: Datum, array: Any) -> Any:
    return provider.TensorDatum(step=datum.step, wall_time=datum.wall_time, numpy=array)


def _blobs(run: str, tag: str, datum: Datum) -> Any:
    keys = (json.dumps([run, tag, datum.step, index]) for index in range(datum.blobs))
    values = tuple(provider.BlobReference(key) for key in keys)
    return SimpleNamespace(step=datum.step, wall_time=datum.wall_time, values=values)
