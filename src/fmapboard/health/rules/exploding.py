"""Activations that grow as the training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class ExplodingCheck(Rule):
    """A layer whose magnitudes have grown a thousandfold since the first logged step.

    Why it hurts: the weights grow without end, and values soon overflow.

    Silent: for a layer that is initialized near 0 and grows to the magnitudes of the others, and
    if the loss falls and all values stay finite.

    Example: a loss without a lower bound, or a learning rate at which the weights swing.

    Attributes:
        growth: factor by which a layer's largest magnitude exceeds that at the first logged step,
            or the median layer's at that step if its own was smaller.
        size: largest magnitude from which such a layer is reported.
    """

    growth: float = thresholds.GROWTH.value
    size: float = thresholds.GROWN_SIZE.value
    kind: ClassVar[str] = "exploding"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="exploding")
    cure: ClassVar[str] = "lower_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        grown = evidence.growth_over_steps(self.growth, self.size)
        if grown is None or evidence.falls():
            return
        row = table.rows[grown.row]
        yield Finding(
            message=f"magnitudes in {call_text(table, row)} grew {rounded(grown.factor)}-fold "
            f"since step {table.steps[0]}, to {rounded(grown.largest)} "
            f"({self.growth:,.0f}-fold or more {table.since_text(grown.step, grown.last)})",
            since_step=grown.step,
            layer=row.facts.label,
            value=grown.factor,
            healthy=f"less than {self.growth:,.0f}-fold",
            meaning="The weights grow: the rate is too high, the loss has no lower bound, or the "
            "targets are far from 0",
            advice="Lower the learning rate, or clip the gradients; scale targets that are far "
            "from 0",
            picture=evidence.record.picture(row),
        )
