"""A learning rate of 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ZeroRateCheck(Rule):
    """The learning rate is 0 at every logged step.

    Why it hurts: nothing is learned.

    Silent: at the first steps, which a warm-up begins with.

    Example: a warm-up that is computed as ``step // warmup_steps``.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.ZERO_RATE_STEPS.value
    kind: ClassVar[str] = "zero_rate"
    group: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        rates = {step: facts.rates for step, facts in evidence.facts.items() if facts.rates}
        if len(rates) < self.least or any(high > 0 for _, high in rates.values()):
            return
        yield Finding(
            message=f"the learning rate is 0 at each of {len(rates)} logged steps",
            since_step=min(rates),
            value=len(rates),
            healthy=evidence.weights_change,
            meaning="Nothing is learned: the scheduler's factor is 0, such as a warm-up that "
            "is computed with an integer division or counts epochs",
            advice="Print scheduler.get_last_lr() over some steps; intended in a long warm-up",
        )
