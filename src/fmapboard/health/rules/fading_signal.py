"""Activations that fade from layer to layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.signal import faded_stretch
from fmapboard.health.table import HealthRow, HealthTable, call_text


@dataclass(frozen=True, slots=True)
class FadingSignalCheck(Rule):
    """What differs between the inputs fades from layer to layer, at the first logged step.

    And the loss has not fallen since, or the output is constant.

    Why it hurts: gradients fade in the same way.

    Silent: if the loss falls; across a normalization, which restores the scale.

    Example: initial weights a hundredth as large as those of ``nn.Conv2d``.

    Attributes:
        fading: largest share of a channel's standard deviation that is left at the last of three
            layers or more with no normalization between them.
        alike: (standard deviation over the images) / (mean magnitude) of the output up to which it
            is reported.
    """

    fading: float = thresholds.FADING.value
    alike: float = thresholds.ALIKE_AT_START.value
    kind: ClassVar[str] = "fading_signal"
    group: ClassVar[str] = "vanishing"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="fading_signal")
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        if not evidence.has_loss_that_stays and not evidence.has_constant_output:
            return
        stretch = faded_stretch(evidence, self.fading)
        spread = max([output.spread or 0.0 for output in evidence.first_outputs], default=0.0)
        last: HealthRow | None = None
        if stretch is not None:
            last = stretch.last
            value = stretch.factor
            text = f"the standard deviation of a channel falls {rounded(value)}-fold from "
            text += f"{call_text(table, stretch.first)} to {call_text(table, stretch.last)}"
            healthy = thresholds.FADING.healthy
        elif 0 < spread <= self.alike:
            value = spread
            last = evidence.loses_inputs
            text = _alike_text(table, spread, last)
            healthy = thresholds.ALIKE_AT_START.healthy
        else:
            return
        yield Finding(
            message=f"{text} at {table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=last.facts.label if last else None,
            value=value,
            healthy=healthy,
            meaning="The signal fades from layer to layer, and so do the gradients: the "
            "initial weights are too small, saturating activations flatten it, or something in "
            "front of the layer divides it or makes all inputs alike",
            advice="Use the layers' own initialization, ReLU, or normalization layers",
            picture=evidence.record.picture(last) if last else "",
        )


def _alike_text(table: HealthTable, spread: float, lost_at: HealthRow | None) -> str:
    """That outputs are alike, and which layer is the first that hardly varies."""
    text = f"the output varies from input to input by {rounded(spread)} of its magnitude"
    if lost_at is None:
        return text
    return f"{text}, and {call_text(table, lost_at)} is the first layer whose channels hardly vary"
