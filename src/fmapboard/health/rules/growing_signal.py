"""Activations that grow from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Change, Evidence, is_weighted, stretches
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
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
        grown = _growth_over_layers(evidence)
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
            healthy=f"less than {self.depth:.0f}-fold",
            meaning="The initial weights are too large: each layer amplifies the signal",
            advice="Scale the initial weights with the number of inputs, or add normalization",
            picture=evidence.record.picture(grown.last),
        )


def _growth_over_layers(evidence: Evidence) -> Change | None:
    """The stretch of layers over which the activations grow most."""
    table = evidence.layers
    stds = []
    for row, std in zip(table.rows, table.columns["std"][0].tolist(), strict=True):
        stds.append(std if is_weighted(row) else math.nan)
    known = np.flatnonzero(np.isfinite(stds))
    first_layer = table.rows[int(known[0])] if known.size else None
    received = evidence.record.network_input.get(table.steps[0], {}).get("std", 1.0)
    most: Change | None = None
    for stretch in stretches(table, stds):
        first, std = stretch[0]
        last, last_std = stretch[-1]
        factor = last_std / std
        if first is first_layer:  # its response to images of standard deviation 1
            factor *= min(received, 1.0)
        if most is None or factor > most.factor:
            most = Change(first, last, factor)
    return most
