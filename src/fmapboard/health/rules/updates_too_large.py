"""Optimizer steps that replace the weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule
from fmapboard.health.updates import Decay, harmful_decay, large_updates

_TOO_LARGE = (
    "the learning rate looks too high",
    "Steps of this size may undo what the weights have learned",
    "Lower the learning rate or the weight decay, or warm the rate up",
)
_TOO_LARGE_OR_NEAR_0 = (
    "the first steps replace the weights",
    "The first steps replace the initial weights, and the loss falls: the weights start near 0, as "
    "those of adapters do, or the learning rate is too large",
    "Lower the learning rate, or warm it up; do nothing if the weights start near 0",
)


@dataclass(frozen=True, slots=True)
class UpdatesTooLargeCheck(Rule):
    """Updates of the weights that are large relative to the weights, |Δw| / |w| of one step.

    The median over the weights counts: those of layers with kernels, or, where these are less than
    a third, as in a transformer, all weights; no biases and the like, which may start at 0.

    Or weight decay shrinks the weights: half of their norm at the first logged step is gone, and
    the loss stays or the output is constant.

    Why it hurts: steps of this size undo what the weights have learned.

    Silent: for a fresh head on a frozen backbone, for a single weight that settles, for weights
    whose gradient is always 0, and for L-BFGS, one step of which is many steps along a line.

    Example: SGD with a learning rate of 10, or with a weight decay of 0.5.

    Attributes:
        high: reported if the median is above it at ``lasting`` logged steps in a row. One step is
            enough before channels die, and before values explode or are not finite, and among the
            first four if the loss stays or the output is constant.
        lasting: number of logged steps; of a single weight, the last ones of the run.
    """

    high: float = thresholds.UPDATE_HIGH.value
    lasting: int = thresholds.UPDATE_HIGH_STEPS.value
    kind: ClassVar[str] = "updates_too_large"
    group: ClassVar[str] = "update_ratio"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="updates_too_large")
    cure: ClassVar[str] = "lower_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        ratios = evidence.update_ratios
        if ratios is None or ratios.is_of_head:
            return
        large = large_updates(evidence, ratios, self.high, self.lasting)
        decay = harmful_decay(evidence)
        if decay is not None and (large is None or decay.since < large.since):
            yield _shrunk(decay)
            return
        if large is None:
            return
        may_start_near_0 = large.are_first and evidence.falls()
        start, meaning, advice = _TOO_LARGE_OR_NEAR_0 if may_start_near_0 else _TOO_LARGE
        yield Finding(
            message=f"{start}: {large.text_with(decay)}",
            since_step=large.since,
            parameter=large.parameter,
            value=large.value,
            healthy=thresholds.UPDATE_HIGH.healthy,
            meaning=meaning,
            advice=advice,
        )


def _shrunk(decay: Decay) -> Finding:
    return Finding(
        message=f"{decay.text}, and no more than half of it since step {decay.since}",
        since_step=decay.since,
        value=decay.left,
        healthy="more than half",
        meaning="The weight decay shrinks the weights faster than the loss makes them grow",
        advice="Lower the weight decay; with Adam, use AdamW, whose steps shrink weights less",
        cure="",
    )
