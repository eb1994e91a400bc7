"""How much layers of one run and step differ from their counterparts in another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_MOST = 64
"""Layers per request."""


class _Side(NamedTuple):
    """A column: the pictures of one run at one step."""

    run: str
    step: int
    sample: int
    role: str


@dataclass(frozen=True, slots=True)
class _Layer(LayerAt):
    """A layer of a side, at the last kept step up to the side's."""

    side: _Side

    @property
    def input(self) -> tuple[str, str, int, int]:
        """What names its input image: run, model, sample and step."""
        return self.side.run, self.series.layer.name, self.side.sample, self.point.step


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
    sides = _Side(run, step, sample, role), _Side(other_run, other_step, other_sample, other_role)
    for side, prefix in zip(sides, ("", "other_"), strict=True):
        if side.role not in ROLES[:3]:
            expected = ", ".join(ROLES[:3])
            raise Invalid(f"the query's {prefix}role must be one of {expected}, not {side.role!r}")
        if side.sample < 0:
            raise Invalid(f"the query's {prefix}sample must not be negative")
    a, b = _layers(provider, sides[0], key), _layers(provider, sides[1], other_key)
    pairs = [(a[one], b[other]) for one, other in zip(key, other_key, strict=True)]
    compared = cache(partial(_compared_inputs, provider))  # many layers saw the same images
    same = [
        None if isinstance(one, str) or isinstance(other, str) else compared(one.input, other.input)
        for one, other in pairs
    ]
    asked = [pair for pair, each in zip(pairs, same, strict=True) if each == "same"]
    maps = _maps(provider, [layer for pair in asked for layer in pair])
    listed = [
        LayerDifference(key=one, other_key=other, inputs=each, **_compared(maps, *pair))
        for one, other, each, pair in zip(key, other_key, same, pairs, strict=True)
    ]
    return Difference(listed)


def _layers(provider: Provider, side: _Side, keys: Sequence[str]) -> dict[str, _Layer | str]:
    """Key -> the layer, or why it cannot be read."""
    every = series_of(provider, side.run, keys)
    points = [series.points[nearest(series.points, side.step)] for series in every]
    found: dict[str, _Layer | str] = {key: f"no layer {key!r} in run {side.run!r}" for key in keys}
    for series, point, record in zip(every, points, records_at(provider, points), strict=True):
        if isinstance(record, FormatError):
            found[series.layer.key] = str(record)
        else:
            found[series.layer.key] = _Layer(series, point, record, side)
    return found


def _compared(
    maps: Mapping[tuple[_Side, Point], MapValues | None], a: _Layer | str, b: _Layer | str
) -> dict[str, Any]:
    """How much two layers differ; ``maps`` holds those of layers that saw the same input."""
    facts = dict.fromkeys(
        ("step", "other_step", "measure", "value", "rounding", "ratio", "nonfinite")
    )
    if isinstance(a, str) or isinstance(b, str):
        return {**facts, "why": a if isinstance(a, str) else b}
    facts |= {"step": a.point.step, "other_step": b.point.step}
    by_maps = _of_maps(maps.get((a.side, a.point)), maps.get((b.side, b.point)))
    if by_maps is not None:
        return {**facts, **by_maps, "measure": "maps", "why": ""}
    of = [statistics(each.record, each.side.role) for each in (a, b)]
    by_statistics = _of_statistics(*of)
    if by_statistics is not None:
        return {**facts, **by_statistics, "measure": "statistics", "why": ""}
    missing = "no statistics were recorded" if not all(of) else "not the same number of channels"
    return {**facts, "why": missing}


def _compared_inputs(provider: Provider, *places: tuple[str, str, int, int]) -> Inputs:
    """ "same", "different", or "unknown" if an image is not kept at exactly this step."""
    if places[0] == places[1]:
        return "same"
    first, second = (_input(provider, *place) for place in places)
    if first is None or second is None:
        return "unknown"
    if first == second:
        return "same"
    one, other = decoded(first), decoded(second)
    if one is None or other is None:
        return "unknown"
    return "same" if np.array_equal(one[1], other[1]) else "different"


def _input(provider: Provider, run: str, name: str, sample: int, step: int) -> bytes | None:
    """The PNG of an input image."""
    tag = input_tag(name, sample)
    points = provider.points(IMAGES, run, [tag]).get(tag, ())
    point = next((point for point in points if point.step == step), None)
    return provider.blobs([(point, FIRST_PICTURE)])[0] if point else None


def _maps(
    provider: Provider, layers: Sequence[_Layer | str]
) -> dict[tuple[_Side, Point], MapValues | None]:
    """The drawn maps of layers; missing or None if they are not kept or cannot be read."""
    known = [each for each in layers if isinstance(each, _Layer)]
    asked = {}
    for layer, places in zip(known, picture_places(provider, known), strict=True):
        role, sample = layer.side.role, layer.side.sample
        for picture, of in zip(layer.record.raw["pictures"], places, strict=True):
            lo, hi = (layer.record.arrays.get(f"{role}.{end}") for end in ("lo", "hi"))
            if picture["role"] != role or lo is None or hi is None:
                continue
            if sample < min(len(lo), len(of)):
                asked[layer.side, layer.point] = of[sample], picture, lo[sample], hi[sample]
    pngs = provider.blobs([blob for blob, *_ in asked.values()], keep=False)
    return {
        place: None if png is None else map_values(png, *facts)
        for (place, (_, *facts)), png in zip(asked.items(), pngs, strict=True)
    }


def _of_maps(a: MapValues | None, b: MapValues | None) -> dict[str, Any] | None:
    """Difference of maps, and the part of it that may be rounding; None if they differ in size."""
    if a is None or b is None or a.values.shape != b.values.shape:
        return None
    both = np.isfinite(a.values) & np.isfinite(b.values)
    values = (a.values, b.values) if both.all() else (a.values[both], b.values[both])
    squares = np.square(a.unit, dtype=np.float64) + np.square(b.unit, dtype=np.float64)
    return _apart(*values, float(both.mean()), math.sqrt(squares.mean() / 3))


def _of_statistics(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> dict[str, Any] | None:
    """Difference of the channels' means and standard deviations; None if it cannot be told."""
    if not a or not b or len(a["mean"]) != len(b["mean"]):
        return None
    first, second = (np.stack([each["mean"], each["std"]]) for each in (a, b))
    finite = np.isfinite(first).all(0) & np.isfinite(second).all(0)
    return _apart(first[:, finite], second[:, finite], float(finite.mean()))


def _apart(a: Floats, b: Floats, finite: float, rounding: float | None = None) -> dict[str, Any]:
    """Difference of the finite values of two sides, relative to their size.

    Args:
        a: those of one side.
        b: as many of the other.
        finite: their share.
        rounding: the part of the difference that may be rounding; None if it is not known.
    """
    if not finite:
        return {"value": None, "rounding": None, "ratio": None, "nonfinite": 1.0}
    squares = (np.square(each, dtype=np.float64) for each in (a, b, a - b))
    first, second, apart = (float(each.mean()) for each in squares)
    size = math.sqrt((first + second) / 2) or 1.0
    ratio = math.sqrt(second / first) if first else math.inf if second else None
    return {
        "value": math.sqrt(apart) / size,
        "rounding": None if rounding is None else rounding / size,
        "ratio": ratio,
        "nonfinite": 1 - finite,
    }
