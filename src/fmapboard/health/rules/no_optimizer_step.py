"""Backward passes without a step of an optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NoOptimizerStepCheck(Rule):
    """No optimizer stepped on the model at the last logged steps, although backward passes ran.

    Why it hurts: nothing is learned.

    Silent: while gradients are accumulated, if the input requires a gradient, if only submodules
    are called, and for sharded parameters.

    Example: an optimizer that was created from a copy of the model.

    Attributes:
        least: number of logged steps over which the weights are the same.
    """

    least: int = thresholds.UNCHANGED_STEPS.value
    kind: ClassVar[str] = "no_optimizer_step"
    group: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        idle = evidence.newest.idle
        if idle is None or idle.steps < self.least or idle.is_held is None:
            return
        every = [facts.idle for facts in evidence.facts.values()]
        in_a_row = [before for before in every[-1 - idle.steps :] if before is not None]
        if idle.is_held and not all(before.is_cleared for before in in_a_row):
            return  # gradients are being accumulated
        why = "No optimizer holds a parameter of this model; it may hold those of a former copy"
        if idle.is_held:
            why = "An optimizer holds them, and none of its steps lies in a logged step"
        yield Finding(
            message=f"no optimizer stepped on the model at the last {idle.steps + 1} logged "
            f"steps, and weights are the same since step {idle.since}, although backward "
            "passes run",
            since_step=idle.since,
            value=idle.steps,
            healthy=evidence.weights_change,
            meaning=why,
            advice="Check that optimizer.step() is reached, and that the optimizer was "
            "created from the parameters of the model that runs",
        )
