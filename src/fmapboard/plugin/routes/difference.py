"""How much layers of one run and step differ from their counterparts in another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.answers import Answer, Invalid, MaybeNonfinite
from fmapboard.plugin.layer_series import nearest, series_of
from fmapboard.plugin.picture_values import MapValues, decoded, map_values
from fmapboard.plugin.routes.maps import FIRST_PICTURE, picture_places
from fmapboard.plugin.stored_record import ROLES, LayerAt, records_at, statistics
from fmapboard.plugin.tag_names import input_tag
from fmapboard.runs.provider import IMAGES, Point, Provider

Inputs = Literal["same", "different", "unknown"]
Group = Literal["nonfinite", "size", "maps", "statistics", "none"]
Scale = Literal["first", "own"]
_MOST = 64
"""Layers per request."""
_MANIFOLD = 10.0
"""From this ratio of magnitudes on, the measure says no more than that they are not alike."""
_CLIPPED = 0.5
"""A map is mostly clipped by a scale that covers less than this part of its range."""
_FLAT = 0.1
"""A map with less than this part of a scale has at most 25 of its 256 colours, and looks flat."""


class _Side(NamedTuple):
    """A column: the pictures of one run at one step."""

    run: str
    step: int
    sample: int
    role: str


class _InputImage(NamedTuple):
    """Names a stored input image of a model."""

    run: str
    model: str
    sample: int
    step: int


@dataclass(frozen=True, slots=True)
class _Layer(LayerAt):
    """A layer of a side, at the last kept step up to the side's."""

    side: _Side

    @property
    def input(self) -> _InputImage:
        """The image that the layer saw."""
        name = self.series.layer.name
        return _InputImage(self.side.run, name, self.side.sample, self.point.step)


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """A pair of layers, and how much they differ.

    Attributes:
        key: of the layer.
        other_key: of the layer of the other side.
        inputs: whether both saw the same input image: ``same``, ``different`` or ``unknown``; None
            if a layer cannot be read.
        why: why there is no measure; "" if there is one.
        step: at which the layer was compared: the last one up to that of its side.
        other_step: the same of the other side.
        measure: If both sides saw the same input image, ``maps``: the root mean square of the
            difference between the drawn maps, divided by that of the maps (of both sides together),
            so that 0 means the same maps and 2 opposite ones. Otherwise, or if the maps differ in
            size, ``statistics``: the same of the channels' means and standard deviations over the
            batch. This and what follows is None if it cannot be told.
        value: the measure.
        rounding: the part of it that may be due to rounding, of maps.
        ratio: the root mean square of the other side divided by that of the first one: where it is
            far from 1, ``value`` is about 1.41 whatever the maps show.
        nonfinite: share of the values that are not finite.
        group: of layers that can be ranked by one number: by ``nonfinite`` where that is above 0,
            by ``ratio`` (``size``) where one side is far larger than the other, else by the
            ``value`` of the measure; ``none`` without one.
        scale: on which the other side's maps are drawn: ``first`` if they are readable in most
            channels on the scale of the first side, else ``own``; None if a layer cannot be read.
    """

    key: str
    other_key: str
    inputs: Inputs | None
    why: str
    step: int | None
    other_step: int | None
    measure: Literal["maps", "statistics"] | None
    value: MaybeNonfinite | None
    rounding: MaybeNonfinite | None
    ratio: MaybeNonfinite | None
    nonfinite: float | None
    group: Group
    scale: Scale | None


@dataclass(frozen=True, slots=True)
class Difference(Answer):
    """``data/difference``: pairs of layers, in the requested order."""

    layers: list[LayerDifference]


def difference(
    provider: Provider,
    run: str,
    step: int,
    key: Sequence[str],
    other_run: str,
    other_step: int,
    other_key: Sequence[str],
    sample: int = 0,
    role: str = ROLES[0],
    other_sample: int = 0,
    other_role: str = ROLES[0],
) -> Difference:
    """How much layers of two sides differ.

    Args:
        provider: of both runs.
        run: this, ``step``, ``sample`` and ``role`` are the first side; the same with ``other_``
            are the other one.
        step: up to which a layer's last record is read.
        key: keys of layers of the first side.
        other_run: see ``run``.
        other_step: see ``run``.
        other_key: keys of as many layers of the other side, each compared with that of its place.
        sample: index of the sample.
        role: which pictures are compared.
        other_sample: see ``run``.
        other_role: see ``run``.

    Raises:
        Invalid: an argument is.
    """
    if len(key) != len(other_key) or len(key) > _MOST:
        raise Invalid(f"the query must have as many key as other_key, and at most {_MOST}")
    side = _Side(run, step, sample, role)
    other_side = _Side(other_run, other_step, other_sample, other_role)
    _check_side(side, "")
    _check_side(other_side, "other_")
    found = _layers(provider, side, key)
    others = _layers(provider, other_side, other_key)
    compared_inputs = cache(partial(_compared_inputs, provider))  # many layers saw the same images
    pairs: list[_Pair] = []
    for name, other_name in zip(key, other_key, strict=True):
        layer = found[name]
        other = others[other_name]
        inputs: Inputs | None = None
        if isinstance(layer, _Layer) and isinstance(other, _Layer):
            inputs = compared_inputs(layer.input, other.input)
        pairs.append(_Pair(name, other_name, layer, other, inputs))
    maps = _maps(provider, pairs)
    return Difference([_compared(maps, pair) for pair in pairs])


def _check_side(side: _Side, prefix: str) -> None:
    roles = ROLES[:3]
    if side.role not in roles:
        expected = ", ".join(roles)
        raise Invalid(f"the query's {prefix}role must be one of {expected}, not {side.role!r}")
    if side.sample < 0:
        raise Invalid(f"the query's {prefix}sample must not be negative")


class _Pair(NamedTuple):
    """Layers to compare, or why they cannot be read; ``inputs`` as in `LayerDifference`."""

    key: str
    other_key: str
    layer: _Layer | str
    other: _Layer | str
    inputs: Inputs | None


def _layers(provider: Provider, side: _Side, keys: Sequence[str]) -> dict[str, _Layer | str]:
    """Key -> the layer, or why it cannot be read."""
    found: dict[str, _Layer | str] = {}
    for key in keys:
        found[key] = f"no layer {key!r} in run {side.run!r}"
    every = series_of(provider, side.run, keys)
    points = []
    for series in every:
        kept = series.points
        points.append(kept[nearest(kept, side.step)])
    records = records_at(provider, points)
    for series, point, record in zip(every, points, records, strict=True):
        key = series.layer.key
        if isinstance(record, FormatError):
            found[key] = str(record)
        else:
            found[key] = _Layer(series, point, record, side)
    return found


class _Measured(NamedTuple):
    """A measure, as in `LayerDifference`."""

    value: float | None
    rounding: float | None
    ratio: float | None
    nonfinite: float


_Maps = Mapping[tuple[_Side, Point], MapValues | None]
"""The drawn maps of layers; missing or None if they are not kept or cannot be read."""


def _compared(maps: _Maps, pair: _Pair) -> LayerDifference:
    """How much two layers differ; ``maps`` holds those of layers that saw the same input."""
    layer = pair.layer
    other = pair.other
    result = LayerDifference(
        key=pair.key,
        other_key=pair.other_key,
        inputs=pair.inputs,
        why="",
        step=None,
        other_step=None,
        measure=None,
        value=None,
        rounding=None,
        ratio=None,
        nonfinite=None,
        group="none",
        scale=None,
    )
    if isinstance(layer, str):
        return replace(result, why=layer)
    if isinstance(other, str):
        return replace(result, why=other)
    result = replace(
        result, step=layer.point.step, other_step=other.point.step, scale=_scale(layer, other)
    )
    first_maps = maps.get((layer.side, layer.point))
    second_maps = maps.get((other.side, other.point))
    measured = _of_maps(first_maps, second_maps)
    if measured is not None:
        return _with_measure(result, "maps", measured)
    first = statistics(layer.record, layer.side.role)
    second = statistics(other.record, other.side.role)
    if not first or not second:
        return replace(result, why="no statistics were recorded")
    if len(first["mean"]) != len(second["mean"]):
        return replace(result, why="not the same number of channels")
    measured = _of_statistics(first, second)
    return _with_measure(result, "statistics", measured)


def _with_measure(
    result: LayerDifference, measure: Literal["maps", "statistics"], measured: _Measured
) -> LayerDifference:
    ratio = measured.ratio
    group: Group = measure
    if measured.nonfinite:
        group = "nonfinite"
    elif ratio is not None and not 1 / _MANIFOLD < ratio < _MANIFOLD:
        group = "size"
    return replace(result, measure=measure, group=group, **measured._asdict())


def _scale(layer: _Layer, other: _Layer) -> Scale | None:
    """Whether the other layer's maps are readable on the scale of the first one."""
    ends = []
    for drawn in (layer, other):
        for end in ("lo", "hi"):
            values = drawn.record.arrays.get(f"{drawn.side.role}.{end}")
            if values is None or drawn.side.sample >= len(values):
                return None
            ends.append(values[drawn.side.sample])
    channels = min(len(values) for values in ends)
    lo, hi, other_lo, other_hi = np.array([values[:channels] for values in ends], np.float64)
    with np.errstate(invalid="ignore"):
        width = hi - lo
        other_width = other_hi - other_lo
        covered = np.minimum(hi, other_hi) - np.maximum(lo, other_lo)
    # A constant map has nothing to read, and one without a finite value has no range.
    is_judged = np.isfinite(other_width) & (other_width > 0)
    is_readable = (covered >= _CLIPPED * other_width) & (covered >= _FLAT * width) & (width > 0)
    readable = is_readable[is_judged]  # [judged channels]
    return "own" if readable.size and 2 * readable.sum() < readable.size else "first"


def _compared_inputs(provider: Provider, image: _InputImage, other: _InputImage) -> Inputs:
    """ "same", "different", or "unknown" if an image is not kept at exactly this step."""
    if image == other:
        return "same"
    first = _input(provider, image)
    second = _input(provider, other)
    if first is None or second is None:
        return "unknown"
    if first == second:
        return "same"
    first_decoded = decoded(first)
    second_decoded = decoded(second)
    if first_decoded is None or second_decoded is None:
        return "unknown"
    _, pixels = first_decoded
    _, other_pixels = second_decoded
    return "same" if np.array_equal(pixels, other_pixels) else "different"


def _input(provider: Provider, image: _InputImage) -> bytes | None:
    """The PNG of an input image."""
    tag = input_tag(image.model, image.sample)
    series = provider.points(IMAGES, image.run, [tag])
    for point in series.get(tag, ()):
        if point.step == image.step:
            (png,) = provider.blobs([(point, FIRST_PICTURE)])
            return png
    return None


def _maps(provider: Provider, pairs: Sequence[_Pair]) -> _Maps:
    """The maps of the layers that saw the same input."""
    layers = []
    for pair in pairs:
        if pair.inputs == "same":
            both = (pair.layer, pair.other)
            layers += [layer for layer in both if isinstance(layer, _Layer)]
    stored: dict[tuple[_Side, Point], _StoredMaps] = {}
    for layer, places in zip(layers, picture_places(provider, layers), strict=True):
        for picture, samples in zip(layer.record.raw["pictures"], places, strict=True):
            if picture["role"] != layer.side.role:
                continue
            found = _stored_maps(layer, picture, samples)
            if found is not None:
                stored[layer.side, layer.point] = found
    blobs = [found.blob for found in stored.values()]
    pngs = provider.blobs(blobs, keep=False)
    maps: dict[tuple[_Side, Point], MapValues | None] = {}
    for (place, found), png in zip(stored.items(), pngs, strict=True):
        if png is not None:
            maps[place] = map_values(png, found.picture, found.lo, found.hi)
    return maps


class _StoredMaps(NamedTuple):
    """A picture of one sample, its entry in the header, and its scales, [drawn]."""

    blob: tuple[Point, int]
    picture: Mapping[str, Any]
    lo: Floats
    hi: Floats


def _stored_maps(
    layer: _Layer, picture: Mapping[str, Any], samples: Sequence[tuple[Point, int]]
) -> _StoredMaps | None:
    """The picture of the side's sample; None if it or its scale is missing."""
    role = layer.side.role
    sample = layer.side.sample
    arrays = layer.record.arrays
    lo = arrays.get(f"{role}.lo")
    hi = arrays.get(f"{role}.hi")
    if lo is None or hi is None:
        return None
    if sample >= len(lo) or sample >= len(samples):
        return None
    return _StoredMaps(samples[sample], picture, lo[sample], hi[sample])


def _of_maps(a: MapValues | None, b: MapValues | None) -> _Measured | None:
    """Difference of maps, and the part of it that may be rounding; None if they differ in size."""
    if a is None or b is None:
        return None
    if a.values.shape != b.values.shape:
        return None
    values = a.values
    other_values = b.values
    is_finite = np.isfinite(values) & np.isfinite(other_values)
    if not is_finite.all():
        values = values[is_finite]
        other_values = other_values[is_finite]
    first = np.square(a.unit, dtype=np.float64)
    second = np.square(b.unit, dtype=np.float64)
    mean = (first + second).mean()
    rounding = math.sqrt(mean / 3)
    return _apart(values, other_values, float(is_finite.mean()), rounding)


def _of_statistics(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> _Measured:
    """Difference of the means and standard deviations of as many channels."""
    first = np.stack([a["mean"], a["std"]])  # [2, channels]
    second = np.stack([b["mean"], b["std"]])
    are_finite = np.isfinite(first) & np.isfinite(second)
    is_finite = are_finite.all(0)  # [channels]
    share = float(is_finite.mean())
    return _apart(first[:, is_finite], second[:, is_finite], share)


def _apart(a: Floats, b: Floats, finite: float, rounding: float | None = None) -> _Measured:
    """Difference of the finite values of two sides, relative to their size.

    Args:
        a: those of one side.
        b: as many of the other.
        finite: their share.
        rounding: the part of the difference that may be rounding; None if it is not known.
    """
    if not finite:
        return _Measured(value=None, rounding=None, ratio=None, nonfinite=1.0)
    first = _mean_square(a)
    second = _mean_square(b)
    apart = _mean_square(a - b)
    size = math.sqrt((first + second) / 2) or 1.0
    ratio = None
    if first:
        ratio = math.sqrt(second / first)
    elif second:
        ratio = math.inf
    if rounding is not None:
        rounding /= size
    value = math.sqrt(apart) / size
    return _Measured(value, rounding, ratio, 1 - finite)


def _mean_square(values: Floats) -> float:
    squares = np.square(values, dtype=np.float64)
    return float(squares.mean())
