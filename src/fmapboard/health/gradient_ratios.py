"""Ratios of gradients: of first layers and last ones, and of a weight and its bias."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, over_steps
from fmapboard.health.record import Series
from fmapboard.health.table import HealthRow, is_normalized


class GradientRatios(NamedTuple):
    """The gradient per weight of the first layers, divided by that of the last ones.

    Attributes:
        steps: logged steps with a ratio.
        values: the ratios there, finite and at least 0.
        early: those of the first half of the run.
        layer: the first layer in network order.
    """

    steps: list[int]
    values: Floats
    early: Floats
    layer: str

    @property
    def step(self) -> int:
        """The first logged step."""
        return self.steps[0]


def gradient_ratios(evidence: Evidence, least: int) -> GradientRatios | None:
    """The gradient per weight of the first layers, divided by that of the last ones.

    None if fewer than four layers have gradients, or two of which the first one's is always 0. In a
    network of linear layers alone three layers are the first ones: two may be queries and keys,
    which hardly learn at first.

    Args:
        evidence: of the run.
        least: number of logged steps; None is returned if fewer have a ratio.

    Raises:
        NotRecorded: the run has no overview series, or no gradient norms.
    """
    norms = evidence.record.group(tags.GRADIENT_NORM)
    rows = evidence.weighted_layers
    firsts = 2
    if not rows:
        rows = [row for row in evidence.layers.rows if row.facts.type == "Linear"]
        firsts = thresholds.FIRST_LINEAR_LAYERS.value
    names: list[str] = []
    series: list[Series] = []
    roots: list[float] = []
    for row in rows:
        own = norms.get(f"{row.facts.layer}.weight")
        if own is not None:
            names.append(row.facts.layer)
            series.append(own)
            roots.append(math.sqrt(math.prod(row.facts.kernel_shape or ())))
    is_short = len(names) < thresholds.DEEP.value
    if len(names) < 2 or (is_short and series[0].values.any()):
        return None
    steps, norm = over_steps(series)
    norm /= roots  # [S, layers], per weight
    last = thresholds.LAST_LAYERS.value
    with np.errstate(all="ignore"):
        ratios = norm[:, :-1][:, :firsts].max(1) / norm[:, -last:].max(1)
    is_known = np.isfinite(ratios) & ~np.isnan(norm).any(1)
    ratios = ratios[is_known]
    if len(ratios) < max(least, 1):
        return None
    early = ratios[: max(least, len(ratios) // 2)]
    return GradientRatios(steps[is_known].tolist(), ratios, early, names[0])


class InputMagnitudes(NamedTuple):
    """About the magnitude of the network's inputs, as the gradients of its first layer tell it.

    Attributes:
        row: the layer.
        since: the first logged step.
        ratios: one per logged step at which it is known, at least one.
    """

    row: HealthRow
    since: int
    ratios: Floats

    @property
    def median(self) -> float:
        """The median over the steps."""
        return float(np.median(self.ratios))


def input_magnitudes(evidence: Evidence) -> InputMagnitudes | None:
    """The norm of the gradient of the first layer's weight over that of its bias.

    It is not known where the gradient of the bias is 0. None if it is at no step, or if a
    normalization follows.
    """
    row = evidence.first_layer
    if row is None or is_normalized(row):
        return None
    own = "_ih_l0" if row.facts.type in ("RNN", "LSTM", "GRU") else ""
    weight = evidence.gradient_norms.get(f"{row.facts.layer}.weight{own}")
    bias = evidence.gradient_norms.get(f"{row.facts.layer}.bias{own}")
    if weight is None or bias is None:
        return None
    steps, values = over_steps([weight, bias])  # values [S, 2]
    values = values[values[:, 1] > 0]
    if not len(values):
        return None
    return InputMagnitudes(row, int(steps[0]), values[:, 0] / values[:, 1])


def receives_zeros(evidence: Evidence, row: HealthRow) -> bool:
    """True if the weight of a layer is not 0, its gradient is, and all that it returns is constant.

    The gradient is the sum over the batch of what the layer receives, each weighted.
    """
    weight = f"{row.facts.layer}.weight"
    is_trained = any((series.values > 0).any() for series in evidence.gradient_norms.values())
    if not (is_trained and evidence.has_zero_gradient(weight)):
        return False
    if weight not in evidence.record.scalars.get(tags.UPDATE_RATIO, {}):
        return False  # it may be 0
    constant = evidence.layers.columns["constant"][:, evidence.layers.rows.index(row)]
    return bool((constant == 1).all())
