"""Gradients that fade on their way to the first layers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, over_steps
from fmapboard.health.finding import Finding
from fmapboard.health.record import Series
from fmapboard.health.rule import Rule

_SMALL = (
    "The first layers hardly learn: saturating activations, too small weights, or a deep "
    "network without normalization or skip connections",
    "Use another initialization, normalization layers or skip connections",
)
_ZERO = (
    "No gradient reaches the first layers: an operation whose gradient is 0, such as "
    "rounding, a threshold, clamping out of range or a weight of 0, or activations that are "
    "all off",
    "Find the operation behind these layers whose gradient is 0",
)
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class VanishingCheck(Rule):
    """Gradients of the first layers far below those of the last ones, in the first half of the run.

    A weight's gradient is its 2-norm over the root of its size. The larger one of the first two
    layers with kernels is compared with the largest of the last three, at the first logged step and
    in the median.

    Why it hurts: the first layers hardly learn.

    Silent: for networks of fewer than four such layers, unless the first one gets exactly 0.

    Example: ten layers with sigmoids, without normalization or skip connections.

    Attributes:
        ratio: up to which it is reported.
        least: number of logged steps with a ratio.
    """

    ratio: float = thresholds.GRADIENT_RATIO.value
    least: int = thresholds.GRADIENT_RATIO_STEPS.value
    kind: ClassVar[str] = "vanishing"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="vanishing")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        ratios = gradient_ratios(evidence, self.least)
        if ratios is None:
            return
        value = float(np.median(ratios.early))
        if not max(ratios.early[0], value) < self.ratio:
            return
        is_small = ratios.values < self.ratio
        last = None if is_small[-1] else ratios.steps[int(np.flatnonzero(is_small)[-1])]
        size = "are exactly 0"
        meaning, advice = _ZERO
        if ratios.early.any():
            size = f"are {value:.0e} times those of the last ones"
            meaning, advice = _SMALL
        yield Finding(
            message=f"gradients per weight of the first layers, from `{ratios.layer}` on, "
            f"{size} {evidence.layers.since_text(ratios.step, last)}",
            since_step=ratios.step,
            layer=ratios.layer,
            value=value,
            healthy=thresholds.GRADIENT_RATIO.healthy,
            meaning=meaning,
            advice=advice,
        )


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
