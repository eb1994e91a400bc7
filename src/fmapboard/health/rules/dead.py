"""Channels that are off for every input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.layer_findings import (
    LINES,
    DeadLayer,
    explanation_of_dead,
    least_dead_share,
)
from fmapboard.health.rule import Rule
from fmapboard.health.table import after_activation, call_text


@dataclass(frozen=True, slots=True)
class DeadCheck(Rule):
    """The same channels of an activation are off for all inputs, at four logged steps in a row.

    A channel counts if it was off for all values of the batch, at least 500; of all channels
    together, if nine of ten are and the loss does not fall.

    Why it hurts: a channel that is 0 everywhere passes no gradient, so it hardly comes back.

    Silent: below a larger share, for channels that are dead since the first logged step, as many
    are in narrow layers with random weights, and for those of networks that learn all the same.

    Example: one step at a learning rate of 1 that pushes all biases far below 0.

    Attributes:
        share: share of a layer's channels, 0 to 1, from which it is reported.
        share_at_start: the same for those dead since the first logged step, and in networks whose
            losses are known, and have fallen to four fifths or less.
    """

    share: float = thresholds.DEAD_SHARE.value
    share_at_start: float = thresholds.DEAD_SHARE_AT_START.value
    kind: ClassVar[str] = "dead"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="dead")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        layers = evidence.dead_layers(self.share, self.share_at_start)
        for index, layer in enumerate(layers[:LINES]):
            further = len(layers) - LINES if index == LINES - 1 else 0
            yield self._finding(evidence, layer, further)

    def _finding(self, evidence: Evidence, layer: DeadLayer, further: int) -> Finding:
        table = evidence.layers
        row = table.rows[layer.spell.row]
        since = layer.spell.since
        count = f"{row.facts.channels} " if row.facts.channels else ""
        where = call_text(table, row) + after_activation(table, row)
        besides = ""
        if row.facts.values < thresholds.DEAD_VALUES.value:
            besides = f"; few values: {row.facts.values} per channel"
        if layer.behind:
            layers = "layer" if layer.behind == 1 else "layers"
            besides += f"; nothing of the input reaches {layer.behind} {layers} behind it"
        if further > 0:
            besides += f"; {further} further layers have as many"
        word = "dead"
        healthy = f"below {whole_percent(self.share)}"
        meaning, advice = explanation_of_dead(table, layer.spell)
        if table.is_of_images:
            word = "off"
            healthy = ""
        share = whole_percent(layer.share)
        least = whole_percent(least_dead_share(table, layer.spell))
        of_them = "" if least == share else f", {least} or more of them"
        return Finding(
            message=f"{share} of {count}{row.facts.unit}s {word} in {where}{of_them} "
            f"{table.since_text(since)}{besides}",
            since_step=since,
            layer=row.facts.label,
            value=layer.share,
            healthy=healthy,
            meaning=meaning,
            advice=advice,
            picture=evidence.record.picture(row),
        )
