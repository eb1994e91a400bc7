"""Weights that other code changes between two steps of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named, rounded, times
from fmapboard.health.rule import Rule
from fmapboard.health.updates import outside_changes

_OVERWRITTEN = (
    "What the optimizer does is undone, and nothing is learned: an average of weights (EMA) is "
    "copied back into the network at each step, or they are loaded or reset in the loop",
    "Keep the average in a copy of the network and evaluate that; or let nothing but the optimizer "
    "change the weights",
)
_CLAMPED = (
    "What the optimizer does is undone, and nothing is learned: weights are clamped to a range "
    "that is too small",
    "Clamp the weights to a wider range, or penalize large ones in the loss",
)
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class WeightsOverwrittenCheck(Rule):
    """Other code changes the weights between two steps of the optimizer, and nothing is learned.

    At most logged steps after the first, by about as much as a step of the optimizer. A few values
    of each parameter are compared: those that the step before has left with those right before the
    optimizer's step. In ``with board.step(i):`` also those of its beginning and its end with those
    around the optimizer's step; what is done behind the block is not seen.

    Why it hurts: what the optimizer does is undone.

    Silent: if the loss falls, as with clipping, a decay, noise or a projection that is meant;
    if it is not known; and for an average that is swapped in for a validation and out again.

    Example: ``ema.copy_to(model.parameters())`` at each step.

    Attributes:
        least: number of logged steps.
        share: size of the change over that of the optimizer's step, median over parameters and
            steps, from which it is reported.
    """

    least: int = thresholds.LOGGED_STEPS.value
    share: float = thresholds.OVERWRITTEN.value
    kind: ClassVar[str] = "weights_overwritten"
    group: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        changes = outside_changes(evidence, self.least)
        if changes is None or changes.share < self.share or evidence.falls():
            return
        if not evidence.losses and not evidence.has_constant_output:
            return
        count = changes.parameters
        parameters = "1 parameter" if count == 1 else f"{count} parameters"
        meaning, advice = _CLAMPED if changes.are_clamped else _OVERWRITTEN
        does = "clamps" if changes.are_clamped else "changes"
        yield Finding(
            message=f"other code {does} {parameters} between two steps of the optimizer, by "
            f"{times(changes.usual)} (median), {rounded(changes.share)} times as much as a step "
            f"does, at {changes.steps} of {changes.later} {evidence.record.steps_called} after the "
            f"first, since step {changes.since}: {named(changes.names, count)}",
            since_step=changes.since,
            parameter=changes.names[0],
            parameters=changes.names,
            value=changes.share,
            healthy="only the optimizer changes them",
            meaning=meaning,
            advice=advice,
        )
