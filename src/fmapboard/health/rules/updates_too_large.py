"""Optimizer steps that replace the weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, Ratios
from fmapboard.health.finding import Finding, percent, times
from fmapboard.health.rule import Rule

_TOO_LARGE = (
    "Steps of this size may undo what the weights have learned: the learning rate, or its product "
    "with the weight decay, may be too large",
    "Lower the learning rate or the weight decay, or warm the rate up",
)
_TOO_LARGE_OR_NEAR_0 = (
    "The first steps replace the initial weights, and the loss falls: the weights start near 0, as "
    "those of adapters do, or the learning rate is too large",
    "Lower the learning rate, or warm it up; do nothing if the weights start near 0",
)
"""Meaning and advice."""
_DECAY = (
    "The weight decay shrinks the weights faster than the loss makes them grow, and nothing is "
    "learned",
    "Lower the weight decay; with Adam, use AdamW, whose steps shrink weights less",
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
        large = self._large(evidence, ratios)
        half_since = evidence.since(_is_half_gone) if evidence.is_stuck else None
        if half_since is not None and (large is None or half_since < ratios.steps[large.start]):
            yield _shrunk(evidence, half_since)
            return
        if large is None:
            return
        since = ratios.steps[large.start]
        value = float(ratios.median[large.start])
        size = times(value, is_estimate=ratios.is_estimate)
        text = f"step {since} moves a weight by {size} (median over the weights)"
        most = evidence.largest_update(since)
        if most is not None:
            size = times(most.value, is_estimate=most.is_estimate)
            text += f", `{most.parameter}` by {size}"
        if large.stop - large.start > 1:
            text += f"; {large.stop - large.start} logged steps are about as large"
        if half_since is not None:
            text += f"; {_what_decay_leaves(evidence)}"
        meaning, advice = _TOO_LARGE
        if large.start == 0 and evidence.falls():
            meaning, advice = _TOO_LARGE_OR_NEAR_0
        yield Finding(
            message=text,
            since_step=since,
            parameter=None if most is None else most.parameter,
            value=value,
            healthy=thresholds.UPDATE_HIGH.healthy,
            meaning=meaning,
            advice=advice,
        )

    def _large(self, evidence: Evidence, ratios: Ratios) -> slice | None:
        """The logged steps of large updates; None if there are too few."""
        median = ratios.median
        is_large = np.concatenate([[False], median > self.high, [False]])
        ends = np.flatnonzero(is_large[1:] != is_large[:-1]).reshape(-1, 2)  # [spells, 2]
        for start, stop in ends.tolist():
            if stop - start >= self.lasting and (len(ratios.names) > 1 or stop == len(median)):
                return slice(start, stop)
        lost = evidence.lost_since
        before = sum(step < (lost or 0) for step in ratios.steps)
        fatal = np.flatnonzero(median[:before] > self.high)
        if fatal.size:
            return _from_first_to_last(fatal)
        first = np.flatnonzero(median[: thresholds.LOGGED_STEPS.value] > self.high)
        if first.size and evidence.is_stuck:
            return _from_first_to_last(first)
        return None


def _is_half_gone(facts: TrainingFacts) -> bool:
    return facts.weights_left is not None and 2 * facts.weights_left <= 1


def _what_decay_leaves(evidence: Evidence) -> str:
    newest = evidence.newest
    decay = max(newest.weight_decays or (0.0,))
    left = percent(newest.weights_left or 0.0)
    return f"a weight decay of {decay:g} has left {left} of the weights' first norm (median)"


def _shrunk(evidence: Evidence, since: int) -> Finding:
    """Half of the weights' norm or more is gone, under weight decay."""
    meaning, advice = _DECAY
    return Finding(
        message=f"{_what_decay_leaves(evidence)}, and no more than half of it since step {since}",
        since_step=since,
        value=evidence.newest.weights_left,
        healthy="more than half",
        meaning=meaning,
        advice=advice,
        cure="",
    )


def _from_first_to_last(places: npt.NDArray[np.intp]) -> slice:
    return slice(int(places[0]), int(places[-1]) + 1)
