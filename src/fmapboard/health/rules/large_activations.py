"""Huge activations at the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class LargeActivationsCheck(Rule):
    """Magnitudes at the first logged step that no healthy network starts with.

    Why it hurts: the first steps are far too large.

    Silent: for the output, if the loss is known, which tells more.

    Example: ``nn.init.normal_(weight)``, whose standard deviation is 1, in ten layers.

    Attributes:
        start: magnitude of a layer from which it is reported.
    """

    start: float = thresholds.LARGE_AT_START.value
    kind: ClassVar[str] = "large_activations"
    group: ClassVar[str] = "exploding"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="large_activations")
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        magnitudes = np.nan_to_num(table.magnitudes[0], posinf=0.0)  # [layers]
        value = float(magnitudes.max())
        place = int(magnitudes.argmax())
        if value < self.start:
            return
        row = table.rows[place]
        large = np.flatnonzero(table.magnitudes[:, place] >= self.start)
        last = table.steps[large[-1]]
        first = table.steps[0]
        yield Finding(
            message=f"magnitudes in {call_text(table, row)} are up to {rounded(value)} "
            f"{table.since_text(first, last)}",
            since_step=first,
            layer=row.facts.label,
            value=value,
            healthy=thresholds.LARGE_AT_START.healthy,
            meaning="The initial weights are too large, or the inputs are not scaled",
            advice="Use the layers' own initialization, and scale the inputs",
            picture=evidence.record.picture(row),
        )
