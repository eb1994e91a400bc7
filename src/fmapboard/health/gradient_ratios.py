"""The gradients of the first layers beside those of the last ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, over_steps
from fmapboard.health.record import Series


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
