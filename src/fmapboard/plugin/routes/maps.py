"""All pictures and arrays of one layer at one step, in one response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.data_source import IMAGES, Point, Reader
from fmapboard.plugin.http import Answer, Query, container, missing
from fmapboard.plugin.layer_series import Series, nearest, requested_series
from fmapboard.plugin.stored_record import Header, Record, read_record
from fmapboard.plugin.tag_names import input_tag

FIRST_PICTURE = 2
"""Index of the first picture: blobs 0 and 1 are width and height in an Images series, and header
and arrays in a first-step record."""
_PNG = b"\x89PNG\r\n\x1a\n"


def maps(reader: Reader, query: Query) -> Answer:
    """``data/maps``: header, arrays and pictures of a layer at a step."""
    step, stamp = query.whole("step"), query.stamp()
    series = requested_series(reader, query)
    point = next((point for point in series.points if point.step == step), None)
    if point is None:
        raise missing(f"TensorBoard does not keep step {step} of {series.layer.key!r}")
    header, arrays = reader.blobs([(point, 0), (point, 1)])
    try:
        record = read_record(header, arrays)
    except FormatError as error:
        raise missing(str(error)) from error
    assert arrays is not None  # else `read_record` has raised
    packed = _Packed()
    packed.add(arrays, kind="arrays", arrays=record.header.raw["arrays"])
    absent = _add_pictures(packed, reader, series, point, record)
    facts = {
        "header": record.header.raw,
        "step": point.step,
        "wall_time": point.wall_time,
        "parts": packed.parts,
        "missing": absent,
    }
    return container(facts, packed.blobs, lasting=stamp == point.wall_time)


@dataclass(slots=True)
class _Packed:
    """Concatenated blobs, and the offset and length of each."""

    parts: list[dict[str, Any]] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    length: int = 0

    def add(self, blob: bytes, **facts: Any) -> None:
        self.parts.append({**facts, "offset": self.length, "length": len(blob)})
        self.blobs.append(blob)
        self.length += len(blob)


def _add_pictures(
    packed: _Packed, reader: Reader, series: Series, point: Point, record: Record
) -> list[str]:
    """Add the available pictures; returns the roles of the missing ones."""
    header = record.header
    stored = reader.points(IMAGES, point.run, {picture.tag for picture in header.pictures})
    first = next((first for first in series.firsts if first.step == point.step), None)
    places = picture_places(header, stored, first, point.step)
    blobs = iter(reader.blobs([place for group in places for place in group], keep=False))
    absent = []
    for picture, group in zip(header.pictures, places, strict=True):
        pngs = [next(blobs) for _ in group]
        sides = [_sides(png) for png in pngs]
        if len(pngs) < picture.samples or not all(sides):
            absent.append(picture.role)
            continue
        for sample, png in enumerate(pngs):
            assert png is not None  # `_sides` found its width and height
            facts = {"kind": "png", "role": picture.role, "sample": sample}
            packed.add(png, **facts, **sides[sample])
    return absent


def picture_places(
    header: Header, stored: Mapping[str, list[Point]], first: Point | None, step: int
) -> list[list[tuple[Point, int]]]:
    """The blobs of each picture's samples, in the Images series or the first-step record."""
    places, in_first_record = [], FIRST_PICTURE
    for picture in header.pictures:
        point = next((p for p in stored.get(picture.tag, ()) if p.step == step), None)
        start = FIRST_PICTURE
        if point is None and first is not None:
            point, start = first, in_first_record
        in_first_record += picture.samples
        places.append([] if point is None else list(_samples(point, start, picture.samples)))
    return places


def _samples(point: Point, start: int, samples: int) -> Iterator[tuple[Point, int]]:
    for place in range(start, min(start + samples, len(point.blobs))):
        yield point, place


def _sides(png: bytes | None) -> dict[str, int]:
    """Width and height of a PNG, px; empty for anything else."""
    if png is None or len(png) < 24 or not png.startswith(_PNG):
        return {}
    ends = {"width": png[16:20], "height": png[20:24]}
    return {side: int.from_bytes(number, "big") for side, number in ends.items()}


def network_input(reader: Reader, query: Query) -> Answer:
    """``data/input``: PNG of the network's input, at the step that `nearest` finds."""
    run, step, stamp = query.text("run"), query.whole("step"), query.stamp()
    tag = input_tag(query.text("name", ""), query.whole("sample", 0))
    points = reader.points(IMAGES, run, [tag]).get(tag)
    if not points:
        raise missing(f"no {tag!r} in run {run!r}")
    point = points[nearest(points, step)]
    (png,) = reader.blobs([(point, FIRST_PICTURE)], keep=False)
    if not _sides(png):
        raise missing(f"no picture of {tag!r} at step {point.step}")
    headers = (("X-Step", str(point.step)),)
    return Answer(png, "image/png", headers, lasting=stamp == point.wall_time)
