"""The Scalars and Histograms series that belong to one layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.health import thresholds
from fmapboard.plugin.answers import Answer, MaybeNonfinite
from fmapboard.plugin.layer_series import requested_series
from fmapboard.plugin.stored_record import Header, headers_at
from fmapboard.plugin.tag_names import natural
from fmapboard.runs.events import SCALARS
from fmapboard.runs.provider import HISTOGRAMS, Provider

_OF_LABEL = (tags.CONSTANT_CHANNELS, tags.NONFINITE, tags.DEAD_CHANNELS)
_OF_TENSOR = tuple(tags.HISTOGRAM_OF.values())
_NUMBERS_OF_PARAMETER = (tags.GRADIENT_NORM, tags.UPDATE_RATIO)
_HISTOGRAMS_OF_PARAMETER = (tags.WEIGHTS, tags.GRADIENTS)
_MAX_HISTOGRAMS = 200
"""Histograms per series that are sent; TensorBoard's Python loader keeps 500, more than the chart
has columns."""


@dataclass(frozen=True, slots=True)
class ScalarChart:
    """A scalar over the steps."""

    steps: list[int]
    values: list[MaybeNonfinite]


@dataclass(frozen=True, slots=True)
class HistogramChart:
    """A histogram at each step: the edges [K + 1] of its buckets, and their counts [K]."""

    steps: list[int]
    edges: list[list[MaybeNonfinite]]
    counts: list[list[MaybeNonfinite]]


@dataclass(frozen=True, slots=True)
class Numbers(Answer):
    """``data/numbers``: scalars and histograms of a layer, by tag without the model's name.

    Attributes:
        estimates: tags of the scalars that are estimates, of the newest step; None if none is one.
        usual_updates: the least and the largest usual update ratio.
    """

    scalars: dict[str, ScalarChart]
    histograms: dict[str, HistogramChart]
    estimates: list[str] | None = None
    usual_updates: tuple[float, float] = (
        thresholds.UPDATE_LOW.value,
        thresholds.UPDATE_USUAL.value,
    )


def numbers(provider: Provider, run: str, key: str) -> Numbers:
    """The scalars and histograms of a layer.

    Raises:
        Missing: there is no such layer.
    """
    series = requested_series(provider, run, key)
    label = series.layer.label
    prefix = series.layer.prefix
    scalars = [tags.of(what, label) for what in _OF_LABEL]
    scalars.append(tags.of(tags.GRADIENT_NORM, tags.TOTAL))
    histograms = [tags.of(what, label) for what in _OF_TENSOR]
    layer = label
    estimates = []
    (header,) = headers_at(provider, series.points[-1:])
    if isinstance(header, Header):
        layer = header.layer
        if header.activation is not None:
            scalars.append(tags.of(tags.DEAD_CHANNELS, header.activation.label))
        for name in header.estimated_updates:
            estimates.append(tags.of(tags.UPDATE_RATIO, f"{layer}.{name}"))
    numbered = provider.tags_of(SCALARS, run)
    scalars += _of_parameters(numbered, prefix, _NUMBERS_OF_PARAMETER, layer)
    counted = provider.tags_of(HISTOGRAMS, run)
    histograms += _of_parameters(counted, prefix, _HISTOGRAMS_OF_PARAMETER, layer)
    return Numbers(
        scalars=_scalars(provider, run, prefix, scalars),
        histograms=_histograms(provider, run, prefix, histograms),
        estimates=estimates or None,
    )


def _of_parameters(
    listed: Iterable[str], prefix: str, groups: tuple[str, ...], layer: str
) -> list[str]:
    """Tags, without prefix, of a layer's own parameters, not those of its submodules."""
    group = "|".join(groups)
    own = re.compile(rf"(?:{group})/{re.escape(layer)}\.[^.]+")
    found = []
    for tag in listed:
        own_tag = tag.removeprefix(prefix)
        if tag.startswith(prefix) and own.fullmatch(own_tag):
            found.append(own_tag)
    return sorted(found, key=natural)


def _scalars(
    provider: Provider, run: str, prefix: str, requested: list[str]
) -> dict[str, ScalarChart]:
    found = provider.scalars(run, [prefix + tag for tag in requested])
    charts = {}
    for tag in requested:
        data = found.get(prefix + tag)
        if data:
            steps = [datum.step for datum in data]
            values = [datum.value for datum in data]
            charts[tag] = ScalarChart(steps, _short(values))
    return charts


def _histograms(
    provider: Provider, run: str, prefix: str, requested: list[str]
) -> dict[str, HistogramChart]:
    found = provider.histograms(run, [prefix + tag for tag in requested])
    charts = {}
    for tag in requested:
        chart = HistogramChart(steps=[], edges=[], counts=[])
        for datum in _evenly_spaced(found.get(prefix + tag, ())):
            rows = datum.numpy  # [K, 3]
            if not _is_histogram(rows):
                continue
            edges = [*rows[:, 0], rows[-1, 1]]
            chart.steps.append(datum.step)
            chart.edges.append(_short(edges))
            chart.counts.append(_short(rows[:, 2]))
        if chart.steps:
            charts[tag] = chart
    return charts


def _evenly_spaced(data: Sequence[Any]) -> Sequence[Any]:
    """At most `_MAX_HISTOGRAMS` data points, the first and the last among them."""
    if len(data) <= _MAX_HISTOGRAMS:
        return data
    last = len(data) - 1
    places = range(_MAX_HISTOGRAMS)
    return [data[place * last // (_MAX_HISTOGRAMS - 1)] for place in places]


def _short(values: Iterable[float]) -> list[float]:
    """Values rounded to the seven digits of a float32, which halves the JSON."""
    return [float(f"{value:.7g}") for value in values]


def _is_histogram(rows: Any) -> bool:
    """True for [K, 3] of left edge, right edge, count; another writer may use the same tag."""
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f":
        return False
    return rows.size > 0 and rows.shape[1:] == (3,)
