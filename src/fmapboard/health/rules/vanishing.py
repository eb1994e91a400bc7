"""Gradients that fade on their way to the first layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.gradient_ratios import gradient_ratios
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
