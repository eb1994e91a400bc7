"""Optimizer steps that hardly move the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, percent, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.updates import clipping_norm, small_updates


@dataclass(frozen=True, slots=True)
class UpdatesTooSmallCheck(Rule):
    """Updates of the weights that are tiny relative to the weights, |Δw| / |w| of one step.

    The weights that count are those of `updates_too_large`, at four logged steps at least. A ratio
    of 0 counts if the learning rate is known to be above 0.

    Why it hurts: training takes very long, or stands still.

    Silent: if the loss falls by a fifth.

    Example: Adam with a learning rate of 1e-7.

    Attributes:
        low: reported if all ratios of all logged steps are below it.
        idle: reported if their median over 50 steps or more is below it, and the loss hardly falls:
            late in the run it is above 0.95 times its first value (``low``: 0.85 times). Where no
            loss is known, the median over the weights must be below it at each logged step.
    """

    low: float = thresholds.UPDATE_LOW.value
    idle: float = thresholds.UPDATE_IDLE.value
    kind: ClassVar[str] = "updates_too_small"
    group: ClassVar[str] = "update_ratio"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="updates_too_small")
    cure: ClassVar[str] = "higher_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        small = small_updates(evidence, self.low, self.idle)
        if small is None or evidence.falls():
            return
        known = _explained(evidence)
        yield Finding(
            message=f"{small.text(evidence)} since step {small.since}; the most in "
            f"`{small.parameter}`",
            since_step=small.since,
            parameter=small.parameter,
            value=small.value,
            healthy=f"{percent(small.limit)} to 4 %",
            meaning=known.meaning,
            advice=known.advice,
            cure=known.cure,
        )


class _Explanation(NamedTuple):
    """Meaning, advice and cure, as in `Finding`."""

    meaning: str
    advice: str
    cure: str | None = None


def _explained(evidence: Evidence) -> _Explanation:
    """Why updates are small."""
    norm = clipping_norm(evidence)
    response = evidence.first_response
    if norm is not None:
        return _Explanation(
            f"The norm of all gradients is {norm:.2g} at every logged step: they are clipped to it",
            "Clip the gradients to a larger norm, such as 1, before the learning rate is changed",
            cure="",  # nothing is clipped in a copy's training
        )
    if thresholds.FIRST_RESPONSE.value < response < math.inf:
        return _Explanation(
            "The weights are large beside their updates: the first layer's output has a standard "
            f"deviation of {rounded(response)}",
            "Use the layers' own initialization, and scale the inputs",
            cure="new_weights",
        )
    return _Explanation(
        "At this rate training takes very long, or stands still",
        "Raise the learning rate, unless a tiny rate is intended",
    )
