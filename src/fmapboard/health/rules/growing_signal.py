"""Activations that grow from layer to layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.signal import growth_over_layers
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class GrowingSignalCheck(Rule):
    """The standard deviation of the activations grows from layer to layer, at the first step.

    Why it hurts: each layer amplifies the signal, and the gradients with it.

    Silent: across a normalization; where the loss falls by a fifth; and in front of images of
    little contrast, which make the first layers' values small.

    Example: initial weights ten times those of ``nn.Conv2d``, in five layers.

    Attributes:
        depth: factor between the standard deviations of the last and the first layer of a stretch
            without a normalization, from which it is reported.
    """

    depth: float = thresholds.GROWING.value
    kind: ClassVar[str] = "growing_signal"
    group: ClassVar[str] = "exploding"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="growing_signal")
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        grown = growth_over_layers(evidence)
        if grown is None or grown.factor < self.depth or evidence.falls():
            return
        first = call_text(table, grown.first)
        last = call_text(table, grown.last)
        yield Finding(
            message="the standard deviation of the activations grows "
            f"{rounded(grown.factor)}-fold from {first} to {last} at "
            f"{table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=grown.last.facts.label,
            value=grown.factor,
            healthy=f"less than {self.depth:,.0f}-fold",
            meaning="The initial weights are too large: each layer amplifies the signal",
            advice="Scale the initial weights with the number of inputs, or add normalization",
            picture=evidence.record.picture(grown.last),
        )
