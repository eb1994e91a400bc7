"""Targets far beyond what the network returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, OutputSteps, quoted
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class FarTargetsCheck(Rule):
    """Targets of a regression that are far beyond all outputs, at all of the first steps but one.

    Why it hurts: the network needs very long to get there.

    Silent: once the outputs have come near, as they soon do to targets such as ages.

    Example: prices in dollars as targets, without a scale.

    Attributes:
        away: distance of the targets in units of the largest output, from which it is reported.
        first: least number of logged steps.
        span: number of training steps that they cover.
    """

    away: float = thresholds.TARGETS_AWAY.value
    first: int = thresholds.LOGGED_STEPS.value
    span: int = thresholds.TARGETS_SPAN.value
    kind: ClassVar[str] = "far_targets"
    group: ClassVar[str] = "initial_loss"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            early = self._early(steps)
            if not early:
                continue
            far = sorted(steps[step].away for step in early)[1:]  # at one it may not be certain
            if far[0] < self.away:
                continue
            yield Finding(
                message=f"the targets of the output{quoted(name)} are far beyond all of its "
                f"values, {rounded(far[0])} times as far as the largest or more at {len(far)} of "
                f"the first {len(early)} logged steps (taken for a mean squared error)",
                since_step=min(steps),
                value=far[0],
                healthy="targets around the outputs",
                meaning="The network needs very long to get there: the targets are not scaled",
                advice="Subtract the mean of the targets and divide by their deviation",
            )

    def _early(self, steps: OutputSteps) -> list[int]:
        """The first steps; none if they are too few, or cover too little of the training."""
        end = min(steps) + self.span
        early = [step for index, step in enumerate(steps) if index < self.first or step <= end]
        return early if len(early) >= self.first and early[-1] >= end else []
