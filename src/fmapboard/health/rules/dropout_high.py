"""Dropout that leaves hardly anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class DropoutHighCheck(Rule):
    """Dropout modules in training mode that drop nearly everything.

    Why it hurts: hardly any signal passes.

    Silent: for a single module up to a larger probability, which some recipes use on purpose.

    Example: ``nn.Dropout(0.95)``, where 0.95 was meant to be kept.

    Attributes:
        probability: from which it is reported.
        single: the same if it is one layer.
    """

    probability: float = thresholds.DROPOUT.value
    single: float = thresholds.DROPOUT_SINGLE.value
    kind: ClassVar[str] = "dropout_high"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    cure: ClassVar[str] = "usual_dropout"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        dropouts = evidence.newest.dropouts
        names = [name for name, share in dropouts.items() if share >= self.probability]
        value = max([dropouts[name] for name in names], default=0.0)
        least = self.single if len(names) == 1 else self.probability
        if not names or value < least:
            return
        since = next(step for step, facts in evidence.facts.items() if names[0] in facts.dropouts)
        usual = max(1 - value, thresholds.DROPOUT_USUAL.value)
        yield Finding(
            message=f"dropout sets {100 * value:.3g} % of the values to 0 since step {since}: "
            f"{named(names)}",
            since_step=since,
            layer=names[0],
            value=value,
            healthy="10 to 50 %",
            meaning="Hardly any signal passes: it is the probability of dropping, not keeping",
            advice=f"Use a probability such as {usual:.2g}",
        )
