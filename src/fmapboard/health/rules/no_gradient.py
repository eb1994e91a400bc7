"""Optimizer steps without any gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NoGradientCheck(Rule):
    """No parameter of the model has a gradient other than 0 when an optimizer steps.

    Why it hurts: nothing is learned.

    Silent: if one parameter has a gradient at one logged step.

    Example: ``zero_grad()`` between ``backward()`` and ``step()``.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "no_gradient"
    group: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="no_gradient")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        none = evidence.without_gradient
        norms = evidence.gradient_norms
        if len(none) < self.least or any((series.values != 0).any() for series in norms.values()):
            return
        if not norms and not set.intersection(*none.values()):
            return
        yield Finding(
            message=f"no parameter has a gradient other than 0 at any of {len(none)} logged steps",
            since_step=min(none),
            value=len(none),
            healthy=evidence.weights_change,
            meaning="Nothing is learned: zero_grad() is called between backward() and step(), "
            "backward() is not called, or the loss does not depend on the parameters",
            advice="Call zero_grad() before backward() or after step(), and check that the "
            "loss is not detached or multiplied by 0",
        )
