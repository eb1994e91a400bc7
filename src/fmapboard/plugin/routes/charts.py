"""The Scalars and Histograms series that belong to one layer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.answers import Answer, MaybeNonfinite
from fmapboard.plugin.layer_series import requested_series
from fmapboard.plugin.stored_record import headers_at
from fmapboard.plugin.tag_names import natural
from fmapboard.runs.events import SCALARS
from fmapboard.runs.provider import HISTOGRAMS, Provider

_OF_LABEL = (tags.CONSTANT_CHANNELS, tags.NONFINITE, tags.DEAD_CHANNELS)
_OF_TENSOR = tuple(tags.HISTOGRAM_OF.values())
_OF_PARAMETER = (tags.WEIGHTS, tags.GRADIENTS)
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
    """

    scalars: dict[str, ScalarChart]
    histograms: dict[str, HistogramChart]
    estimates: list[str] | None = None


def numbers(provider: Provider, run: str, key: str) -> Numbers:
    """The scalars and histograms of a layer.

    Raises:
        Missing: there is no such layer.
    """
    series = requested_series(provider, run, key)
    prefix = series.layer.prefix
    (found,) = headers_at(provider, series.points[-1:])
    header = None if isinstance(found, FormatError) else found
    layer = series.layer.label if header is None else header.layer
    scalars = [tags.of(what, series.layer.label) for what in _OF_LABEL]
    scalars.append(tags.of(tags.GRADIENT_NORM, tags.TOTAL))
    if header is not None and header.activation is not None:
        scalars.append(tags.of(tags.DEAD_CHANNELS, header.activation.label))
    per_parameter = (tags.GRADIENT_NORM, tags.UPDATE_RATIO)
    of_each = _of_parameters(provider.tags_of(SCALARS, run), prefix, per_parameter, layer)
    of_tensor = [tags.of(what, series.layer.label) for what in _OF_TENSOR]
    of_parameter = _of_parameters(provider.tags_of(HISTOGRAMS, run), prefix, _OF_PARAMETER, layer)
    estimated = () if header is None else header.estimated_updates
    estimates = [tags.of(tags.UPDATE_RATIO, f"{layer}.{name}") for name in estimated]
    return Numbers(
        _scalars(provider, run, prefix, [*scalars, *of_each]),
        _histograms(provider, run, prefix, [*of_tensor, *of_parameter]),
        estimates or None,
    )


def _of_parameters(
    tags: Iterable[str], prefix: str, groups: tuple[str, ...], layer: str
) -> list[str]:
    """Tags, without prefix, of a layer's own parameters, not those of its submodules."""
    found = [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]
    own = re.compile(rf"(?:{'|'.join(groups)})/{re.escape(layer)}\.[^.]+")
    return sorted(filter(own.fullmatch, found), key=natural)


def _scalars(
    provider: Provider, run: str, prefix: str, requested: list[str]
) -> dict[str, ScalarChart]:
    found = provider.scalars(run, [prefix + tag for tag in requested])
    return {
        tag: ScalarChart([d.step for d in data], _short(d.value for d in data))
        for tag in requested
        if (data := found.get(prefix + tag))
    }


def _histograms(
    provider: Provider, run: str, prefix: str, requested: list[str]
) -> dict[str, HistogramChart]:
    found = provider.histograms(run, [prefix + tag for tag in requested])
    charts = {}
    for tag in requested:
        data = [d for d in found.get(prefix + tag, ()) if _is_histogram(d.numpy)]
        if data:
            last, kept = len(data) - 1, min(len(data), _MAX_HISTOGRAMS)  # evenly spaced
            data = [data[place * last // max(kept - 1, 1)] for place in range(kept)]
            charts[tag] = HistogramChart(
                [d.step for d in data],
                [_short([*d.numpy[:, 0], d.numpy[-1, 1]]) for d in data],
                [_short(d.numpy[:, 2]) for d in data],
            )
    return charts


def _short(values: Iterable[float]) -> list[float]:
    """Values rounded to the seven digits of a float32, which halves the JSON."""
    return [float(f"{value:.7g}") for value in values]


def _is_histogram(rows: Any) -> bool:
    """True for [K, 3] of left edge, right edge, count; another writer may use the same tag."""
    is_float = isinstance(rows, np.ndarray) and rows.dtype.kind == "f"
    return is_float and rows.size > 0 and rows.shape[1:] == (3,)
