"""The event files of a run, indexed in memory; values are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from fmapboard.formats import framing
from fmapboard.runs import events
from fmapboard.runs.find import entries, event_files

_Test: TypeAlias = Callable[[str], bool] | None
_Steps: TypeAlias = Collection[int] | None
_LEAST = 256
"""Size in bytes of records that are skipped by their step; a scalar has about 50."""


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


@dataclass(slots=True)
class TagSeries:
    """The values of one tag, in the order in which they were written; one per step."""

    plugin: str
    data: dict[int, Datum] = field(default_factory=dict)

    def keep(self, steps: set[int]) -> None:
        """Drop all other steps."""
        self.data = {step: datum for step, datum in self.data.items() if step in steps}

    def ordered(self) -> list[Datum]:
        """The values, ascending by step."""
        return sorted(self.data.values(), key=lambda datum: datum.step)


class EventLog:
    """The event files of a run directory, in the order in which they were begun, read once.

    A file is read up to its end, or to where it is cut off or damaged. As TensorBoard does, a
    resumed run replaces the steps from its first one on, and of two values of a tag at one step the
    first counts.

    Args:
        path: the run directory.
        is_read: for a tag, True if its series is asked for; None to read all.
        steps: the steps to read, of records of 256 bytes or more; None for all.

    Attributes:
        series: by tag.
        started: wall time of the first event, s; None if there is no event.
        problems: what could not be read, in words.

    Raises:
        OSError: the directory cannot be listed.
    """

    def __init__(self, path: Path, is_read: _Test = None, steps: _Steps = None) -> None:
        self.path = path
        self.series: dict[str, TagSeries] = {}
        self.started: float | None = None
        self.problems: list[str] = []
        self._is_read = is_read
        self._steps = steps
        self._known: dict[bytes, str | None] = {}
        for file in event_files(entries(path)):
            self._read(file)

    def strings(self, datum: Datum) -> list[bytes]:
        """The blobs of a value; empty if they can no longer be read."""
        try:
            tensor = _content(datum)
            spans = events.strings(tensor, (0, len(tensor)))
        except (OSError, ValueError):
            return []
        return [tensor[start:end] for start, end in spans]

    def array(self, datum: Datum) -> Any:
        """The value as an array; None if it is none whose numbers are stored as bytes."""
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.util.tensor_util import make_ndarray  # takes 0.2 s, for charts alone

        try:
            tensor = TensorProto.FromString(_content(datum))
            return make_ndarray(tensor) if tensor.tensor_content else None
        except (OSError, ValueError, TypeError, DecodeError):
            return None

    def _read(self, file: str) -> None:
        name = Path(file).name
        try:
            with open(file, "rb") as opened:
                for offset, size in framing.records(opened):
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
                        self._add(content, file, offset)
                    except ValueError as error:
                        damage = f"a record of {size} bytes is damaged ({error})"
                        self.problems.append(f"{name}: {damage}")
        except framing.Damaged as error:
            self.problems.append(f"{name} {error}")
        except OSError as error:
            self.problems.append(f"{name} cannot be read: {error.strerror or error}")

    def _add(self, content: bytes, file: str, offset: int) -> None:
        """Add the values of an event, which begins at an offset of a file."""
        event = events.parse(content)
        found: list[tuple[str, str, Datum]] = []  # tag, plugin; all are parsed before any is added
        for tag, span in self._of(event, content):
            value = events.read_value(content, span)
            blobs = events.strings(content, value.tensor)
            start, end = value.tensor
            datum = Datum(
                step=event.step,
                wall_time=event.wall_time,
                file=file,
                tensor=(offset + start, offset + end),
                blobs=len(blobs),
                number=value.number,
            )
            found.append((tag, value.plugin, datum))
        if self.started is None:
            self.started = event.wall_time
        if event.is_start:
            for series in self.series.values():
                earlier = {step for step in series.data if step < event.step}
                series.keep(earlier)
        for tag, plugin, datum in found:
            series = self.series.setdefault(tag, TagSeries(plugin))
            series.data.setdefault(event.step, datum)

    def _of(self, event: events.Event, content: bytes) -> Iterator[tuple[str, events.Span]]:
        """The tags that are read, and where the values of an event are that have them."""
        for span in event.values:
            tag = events.tag_of(content, span)
            if tag not in self._known:
                name = tag.decode()
                is_read = self._is_read is None or self._is_read(name)
                self._known[tag] = name if is_read else None
            known = self._known[tag]
            if known is not None:
                yield known, span


def _content(datum: Datum) -> bytes:
    """The serialized tensor of a value."""
    start, end = datum.tensor
    with open(datum.file, "rb") as opened:
        opened.seek(start)
        return opened.read(end - start)
