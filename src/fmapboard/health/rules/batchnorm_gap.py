"""Running statistics that do not fit the batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.formats.tags import BATCHNORM_GAP
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class BatchnormGapCheck(Rule):
    """BatchNorm's running variance far from that of the batches, and not about to get closer.

    Of each layer the median over the last quarter of the logged steps counts, then the median over
    the layers.

    Why it hurts: in eval mode the network computes something else than in training.

    Silent: while the gap shrinks, over few training steps, and for layers in eval mode.

    Example: ``nn.BatchNorm2d(64, momentum=1e-4)``.

    Attributes:
        gap: |log(batch variance / running variance)| from which it is reported.
        decay: the gap is shrinking, and not reported, if it is less than this times the median of
            the quarter before.
        least: number of logged steps.
        span: number of training steps between the first and the last of them; until then the
            running variance still approaches that of the batches.
    """

    gap: float = thresholds.BATCHNORM_GAP.value
    decay: float = thresholds.BATCHNORM_DECAY.value
    least: int = thresholds.BATCHNORM_STEPS.value
    span: int = thresholds.BATCHNORM_SPAN.value
    kind: ClassVar[str] = "batchnorm_gap"
    unless: ClassVar[tuple[str, ...]] = ("batchnorm_momentum",)

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.has_batchnorm_gaps:
            return
        third: dict[str, float] = {}
        fourth: dict[str, float] = {}
        begins: list[int] = []
        for layer, series in evidence.record.group(BATCHNORM_GAP).items():
            is_known = np.isfinite(series.values)
            gaps = np.abs(series.values[is_known])
            steps = series.steps[is_known]
            quarter = len(gaps) // thresholds.QUARTERS.value
            if len(gaps) >= self.least and steps[-1] - steps[0] >= self.span:
                third[layer] = float(np.median(gaps[-2 * quarter : -quarter]))
                fourth[layer] = float(np.median(gaps[-quarter:]))
                begins.append(int(steps[-2 * quarter]))
        if not begins:
            return
        before = float(np.median(list(third.values())))
        value = float(np.median(list(fourth.values())))
        if value < self.gap or value < self.decay * before:
            return
        worst = max(fourth, key=fourth.__getitem__)
        since = min(begins)
        factor = math.exp(min(value, thresholds.LARGEST_LOGARITHM.value))
        yield Finding(
            message=f"the variance of the batches differs by a factor of {factor:.2g} from "
            f"BatchNorm's running variance (median of {len(begins)} layers) since step "
            f"{since}; the most in `{worst}`",
            since_step=since,
            layer=worst,
            value=value,
            healthy="a factor of 1.2 or less",
            meaning="In eval mode the network computes something else than in training: the "
            "batches are too small or differ from each other, or the momentum is too small",
            advice="Use larger or better mixed batches, another momentum, or GroupNorm",
        )
