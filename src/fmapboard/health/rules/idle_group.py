"""A parameter group of the optimizer that never gets a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class IdleGroupCheck(Rule):
    """No parameter of a group that the optimizer was given for itself ever gets a gradient.

    Why it hurts: the layers of this group keep their initial values.

    Silent: for an optimizer with a single group, and as soon as one parameter of the group has a
    gradient at one logged step.

    Example: a second head with a learning rate of its own, whose output the loss does not use.

    Attributes:
        least: number of logged steps.
        span: number of training steps between the first and the last of them.
    """

    least: int = thresholds.LOGGED_STEPS.value
    span: int = thresholds.NEVER_CALLED_SPAN.value
    kind: ClassVar[str] = "idle_group"
    group: ClassVar[str] = "unchanged_weights"
    unless: ClassVar[tuple[str, ...]] = ("never_called", "cut_off_layers")
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="unchanged_weights")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        every = evidence.facts.items()
        steps = {step: facts for step, facts in every if facts.no_gradient is not None}
        if len(steps) < self.least or max(steps) - min(steps) < self.span:
            return
        always = set.intersection(*(set(facts.idle_group) for facts in steps.values()))
        names = tuple(name for name in list(steps.values())[-1].idle_group if name in always)
        if not names:
            return
        yield Finding(
            message=f"the optimizer has a parameter group of its own for {named(names)}, which had "
            f"no gradient at any of {len(steps)} {evidence.record.steps_called}",
            since_step=min(steps),
            parameter=names[0],
            parameters=names,
            value=len(names),
            healthy=evidence.weights_change,
            meaning="The loss does not depend on these layers: their output is not used, or it is "
            "detached, or a term of the loss is missing",
            advice="Use their output in the loss, or take them out of the optimizer",
        )
