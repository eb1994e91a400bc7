"""All pictures and arrays of one layer at one step, in one response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.answers import Binary, Missing, Png, as_dict
from fmapboard.plugin.layer_series import Series, nearest, requested_series
from fmapboard.plugin.stored_record import Header, Record, read_record
from fmapboard.plugin.tag_names import input_tag
from fmapboard.runs.provider import IMAGES, Point, Provider

FIRST_PICTURE = 2
"""Index of the first picture: blobs 0 and 1 are width and height in an Images series, and header
and arrays in a first-step record."""
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the bytes of `Maps`.

    Attributes:
        content: the bytes; in the JSON, their ``offset`` and ``length`` in the bytes behind it.
        kind: ``arrays`` or ``png``.
        arrays: name and shape of each array, as in the record's header.
        role: of the picture.
        sample: that it shows.
        width: of the picture, px.
        height: of the picture, px.
    """

    content: bytes
    kind: str
    arrays: list[Any] | None = None
    role: str | None = None
    sample: int | None = None
    width: int | None = None
    height: int | None = None

    @classmethod
    def of_png(cls, png: bytes, role: str, sample: int) -> Part:
        """Read the size of a PNG file (see `is_png`)."""
        width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
        return cls(png, "png", role=role, sample=sample, width=width, height=height)


@dataclass(frozen=True, slots=True)
class Maps(Binary):
    """``data/maps``: header, arrays and pictures of a layer at a step.

    Attributes:
        header: of the record, as stored.
        step: number of the step.
        wall_time: s.
        parts: the arrays, and one PNG per picture and sample.
        missing: roles of the pictures that are not kept.
    """

    header: dict[str, Any]
    step: int
    wall_time: float
    parts: tuple[Part, ...]
    missing: list[str]

    @property
    def as_of(self) -> float:
        """See `Answer`."""
        return self.wall_time

    def packed(self) -> tuple[Any, list[bytes]]:
        """See `Binary`."""
        sizes = [len(part.content) for part in self.parts]
        offsets = accumulate(sizes, initial=0)
        placed = zip(self.parts, offsets, sizes, strict=False)
        parts = [
            {**as_dict(part), "offset": offset, "length": size} for part, offset, size in placed
        ]
        return {**as_dict(self), "parts": parts}, [part.content for part in self.parts]


def maps(provider: Provider, run: str, key: str, step: int) -> Maps:
    """The pictures and arrays of a layer at a step.

    Raises:
        Missing: there are none.
    """
    series = requested_series(provider, run, key)
    point = next((point for point in series.points if point.step == step), None)
    if point is None:
        raise Missing(f"TensorBoard does not keep step {step} of {series.layer.key!r}")
    blobs = provider.blobs([(point, 0), (point, 1)])
    try:
        record = read_record(*blobs)
    except FormatError as error:
        raise Missing(str(error)) from error
    header = record.raw
    arrays = Part(blobs[1] or b"", "arrays", arrays=header["arrays"])
    pictures, absent = _pictures(provider, series, point, record)
    return Maps(header, point.step, point.wall_time, (arrays, *pictures), absent)


def _pictures(
    provider: Provider, series: Series, point: Point, record: Record
) -> tuple[list[Part], list[str]]:
    """The pictures that are kept, and the roles of the others."""
    header = record.header
    stored = provider.points(IMAGES, point.run, {picture.tag for picture in header.pictures})
    first = next((first for first in series.firsts if first.step == point.step), None)
    places = picture_places(header, stored, first, point.step)
    blobs = iter(provider.blobs([place for group in places for place in group], keep=False))
    found, absent = [], []
    for picture, group in zip(header.pictures, places, strict=True):
        pngs = [next(blobs) or b"" for _ in group]
        if len(pngs) < picture.samples or not all(map(is_png, pngs)):
            absent.append(picture.role)
        else:
            found += [Part.of_png(png, picture.role, at) for at, png in enumerate(pngs)]
    return found, absent


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


def is_png(content: bytes) -> bool:
    """True for bytes that begin as a PNG with its width and height."""
    return len(content) >= 24 and content.startswith(_PNG)


def network_input(provider: Provider, run: str, step: int, name: str = "", sample: int = 0) -> Png:
    """``data/input``: the network's input, at the step that `nearest` finds.

    Raises:
        Missing: there is none.
    """
    tag = input_tag(name, sample)
    points = provider.points(IMAGES, run, [tag]).get(tag)
    if not points:
        raise Missing(f"no {tag!r} in run {run!r}")
    point = points[nearest(points, step)]
    (png,) = provider.blobs([(point, FIRST_PICTURE)], keep=False)
    if png is None or not is_png(png):
        raise Missing(f"no picture of {tag!r} at step {point.step}")
    return Png(png, point.step, point.wall_time)
