"""Activations inside the network that are at their ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.rule import Rule
from fmapboard.health.saturation import saturated_layers
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class SaturatedCheck(Rule):
    """Tanh and sigmoids inside the network most of whose outputs are at their ends.

    That is estimated from mean and standard deviation of the layer in front, as if its values had a
    normal distribution, at the newest four logged steps.

    Why it hurts: saturated outputs pass hardly any gradient.

    Silent: for the last layer with kernels, whose answer it is, and for sigmoids that were not
    saturated at the start: gates may learn to open and close.

    Example: images from 0 to 255 in front of a layer with a tanh.

    Attributes:
        share: share of the outputs beyond 0.99 (sigmoids: also below 0.01) from which it is
            reported.
        least: number of logged steps at the end of the run that must all have it.
    """

    share: float = thresholds.SATURATED_SHARE.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "saturated"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="saturated")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        if len(table.steps) < self.least or table.is_of_images:
            return
        layers = saturated_layers(evidence, self.share, self.least)
        if not layers:
            return
        first = layers[0]
        more = f"; the same behind {len(layers) - 1} further layers" if len(layers) > 1 else ""
        yield Finding(
            message=f"about {whole_percent(first.share)} of the outputs of the {first.kind} behind "
            f"{call_text(table, first.row)} are beyond {first.end} since step {first.since}{more}",
            since_step=first.since,
            layer=first.row.facts.label,
            value=first.share,
            healthy=f"below {whole_percent(self.share)}",
            meaning="Saturated outputs pass hardly any gradient: weights or inputs are too large",
            advice="Check the scale of the inputs and of the initial weights, lower the "
            "learning rate, or put a normalization between the layer and its activation",
            picture=evidence.record.picture(first.row),
        )
