"""All pictures and arrays of one layer at one step, in one response."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.answers import Binary, Missing, Png
from fmapboard.plugin.layer_series import nearest, point_at, requested_series, series_of
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.picture_values import is_png
from fmapboard.plugin.stored_record import (
    MAPS_ROLES,
    Header,
    LayerAt,
    PictureFacts,
    Record,
    channel_codes,
    headers_at,
    read_record,
    statistics,
)
from fmapboard.plugin.tag_names import input_tag
from fmapboard.runs.provider import IMAGES, Point, Provider

FIRST_PICTURE = 2
"""Index of the first picture: blobs 0 and 1 are width and height in an Images series, and header
and arrays in a first-step record."""


@dataclass(frozen=True, slots=True)
class SamplePicture:
    """The picture of one sample."""

    role: str
    sample: int
    png: bytes


@dataclass(frozen=True, slots=True)
class Maps(Binary):
    """``data/maps``: header, arrays and pictures of a layer at a step.

    Attributes:
        header: of the record, as stored, with the ``tokens`` that another record has.
        step: number of the step.
        wall_time: s.
        arrays: of the record, and as ``ROLE.code`` the code of each channel's state, see
            `health.states`.
        pictures: one per role and sample.
        missing: roles of the pictures that are not kept.
    """

    header: dict[str, Any]
    step: int
    wall_time: float
    arrays: Mapping[str, Floats]
    pictures: tuple[SamplePicture, ...]
    missing: list[str]

    @property
    def as_of(self) -> float:
        """See `Answer`."""
        return self.wall_time


def maps(provider: Provider, run: str, key: str, step: int) -> Maps:
    """The pictures and arrays of a layer at a step.

    Raises:
        Missing: there are none.
    """
    series = requested_series(provider, run, key)
    point = point_at(series.points, step)
    if point is None:
        raise Missing(f"TensorBoard does not keep step {step} of {series.layer.key!r}")
    blobs = provider.blobs([(point, 0), (point, 1)])
    try:
        record = read_record(*blobs)
    except FormatError as error:
        raise Missing(str(error)) from error
    if point.step == series.points[-1].step:  # it has its kernels, whatever is kept besides
        earlier = record.header.kernels
        record = record.with_kernels(are_drawn=drawn_at_end(provider, run, point.step, earlier))
    pictures, absent = _pictures(provider, LayerAt(series, point, record))
    slices, ranges = _slices(provider, LayerAt(series, point, record))
    return Maps(
        header=_with_tokens(provider, run, LayerAt(series, point, record)),
        step=point.step,
        wall_time=point.wall_time,
        arrays={
            **record.arrays,
            **_states(record, is_of_images=run_overview(provider, run).is_of_images),
            **ranges,
        },
        pictures=(*pictures, *slices),
        missing=absent,
    )


def drawn_at_end(provider: Provider, run: str, step: int, kernels: PictureFacts | None) -> bool:
    """True if kernels that hardly changed were drawn all the same, as those of the last step.

    Args:
        provider: of the run.
        run: name of the run.
        step: a step.
        kernels: the earlier picture that its record names; None if it names none.
    """
    if kernels is None or kernels.peak_now is None:
        return False
    drawn = provider.points(IMAGES, run, [kernels.tag]).get(kernels.tag, ())
    return point_at(drawn, step) is not None


def _with_tokens(provider: Provider, run: str, layer: LayerAt) -> dict[str, Any]:
    """A header, with the names of tokens that the record of another layer has."""
    raw = layer.record.raw
    label = layer.record.header.tokens_of
    if not label:
        return raw
    key = layer.series.layer._replace(label=label).key
    for other in series_of(provider, run, [key]):
        point = point_at(other.points, layer.point.step)
        headers = [] if point is None else headers_at(provider, [point])
        for header in headers:
            if isinstance(header, Header) and header.tokens:
                return {**raw, "tokens": header.tokens}
    return raw


def _states(record: Record, *, is_of_images: bool) -> dict[str, Floats]:
    codes = {}
    for role in MAPS_ROLES:
        numbers = statistics(record, role)
        if numbers:
            codes[f"{role}.code"] = channel_codes(numbers, is_of_images=is_of_images)
    return codes


def _pictures(provider: Provider, layer: LayerAt) -> tuple[list[SamplePicture], list[str]]:
    """The pictures that are kept, and the roles of the others."""
    (places,) = picture_places(provider, [layer])
    requested = [place for samples in places for place in samples]
    blobs = iter(provider.blobs(requested, keep=False))
    found = []
    absent = []
    for picture, samples in zip(layer.record.header.pictures, places, strict=True):
        pngs = [next(blobs) or b"" for _ in samples]
        is_whole = len(pngs) >= picture.samples
        if not is_whole or not all(map(is_png, pngs)):
            absent.append(picture.role)
            continue
        for sample, png in enumerate(pngs):
            found.append(SamplePicture(picture.role, sample, png))
    return found, absent


def _slices(provider: Provider, layer: LayerAt) -> tuple[list[SamplePicture], dict[str, Floats]]:
    """Further depth slices as further samples, and the ranges of all; nothing if one is missing."""
    arrays = layer.record.arrays
    maps = layer.record.header.maps
    if maps is None or not maps.slices or "slices.lo" not in arrays or "slices.hi" not in arrays:
        return [], {}
    start = FIRST_PICTURE
    if layer.point not in layer.series.own:
        start += sum(picture.samples for picture in layer.record.header.pictures)
    end = start + len(maps.slices) * maps.samples
    if end > len(layer.point.blobs):
        return [], {}
    pngs = provider.blobs([(layer.point, index) for index in range(start, end)], keep=False)
    found = []
    for place, png in enumerate(pngs):
        if png is None or not is_png(png):
            return [], {}
        found.append(SamplePicture(maps.role, maps.samples + place, png))
    ranges = {}
    for name in ("lo", "hi"):
        whole = np.concatenate([arrays[f"{maps.role}.{name}"], arrays[f"slices.{name}"]])
        ranges[f"{maps.role}.{name}"] = whole
    return found, ranges


Places = list[list[tuple[Point, int]]]
"""The blobs of the samples of each picture of a layer."""


def picture_places(provider: Provider, layers: Sequence[LayerAt]) -> list[Places]:
    """The blobs of the pictures of layers, in the Images series or the first-step record."""
    asked = defaultdict[str, set[str]](set)
    for layer in layers:
        for picture in layer.record.header.pictures:
            asked[layer.point.run].add(picture.tag)
    stored = {}
    for run, tags in asked.items():
        stored[run] = provider.points(IMAGES, run, tags)
    return [_places(layer, stored[layer.point.run]) for layer in layers]


def _places(layer: LayerAt, stored: Mapping[str, list[Point]]) -> Places:
    in_first_record = FIRST_PICTURE
    places: Places = []
    for picture in layer.record.header.pictures:
        step = layer.point.step if picture.step is None else picture.step
        point = point_at(stored.get(picture.tag, ()), step)
        start = FIRST_PICTURE
        if point is None:
            point = point_at(layer.series.firsts, step)
            start = in_first_record
        in_first_record += picture.samples
        samples = []
        if point is not None:
            end = min(start + picture.samples, len(point.blobs))
            samples = [(point, index) for index in range(start, end)]
        places.append(samples)
    return places


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
