"""How the gradients of the first layers compare with those of the last ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fmapboard.checks.run_record import RunRecord, Steps
from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats

_LEAST_WEIGHTS = 40
"""Weights of a layer below which it is left out."""
_LEAST_LAYERS = 4


class GradientRatios(NamedTuple):
    """The ratio at each logged step; ``first`` is the first layer in network order.

    ``steps`` and ``values`` are [S]; ``values`` are finite and at least 0.
    """

    steps: Steps
    values: Floats
    first: str


def gradient_ratios(record: RunRecord) -> GradientRatios | None:
    """The gradient per weight of the first layers, divided by that of the last ones.

    It is the larger one of the first two layers with kernels, divided by the largest one of the
    last three; the gradient per weight is its 2-norm divided by the square root of the number of
    weights. None if fewer than four such layers of at least 40 weights have gradients.

    Raises:
        NotRecorded: the run has no overview series, or no gradient norms.
    """
    norms = record.group(tags.GRADIENT_NORM)
    layers = []
    for row in record.weighted_layers():
        weights = math.prod(row.facts.kernel_shape or ())
        series = norms.get(f"{row.facts.layer}.weight")
        if series is not None and weights >= _LEAST_WEIGHTS:
            layers.append((row.facts.layer, series, math.sqrt(weights)))
    if len(layers) < _LEAST_LAYERS:
        return None
    steps = layers[0][1].steps
    if any(series.steps is not steps for _, series, _ in layers):
        steps = np.unique(np.concatenate([series.steps for _, series, _ in layers]))
    table = np.full((len(steps), len(layers)), np.nan)
    for column, (_, series, root) in enumerate(layers):
        at = slice(None) if series.steps is steps else np.searchsorted(steps, series.steps)
        table[at, column] = series.values / root
    known = ~np.isnan(table).any(1) & (table[:, -3:].max(1) > 0)
    if not known.any():
        return None
    table = table[known]
    with np.errstate(all="ignore"):
        ratios = table[:, :2].max(1) / table[:, -3:].max(1)
    finite = np.isfinite(ratios)
    return GradientRatios(steps[known][finite], ratios[finite], layers[0][0])
