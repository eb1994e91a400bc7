"""A network whose layers return constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.tab_records import Floats
from fmapboard.health import effects
from fmapboard.health.evidence import Evidence, is_weighted
from fmapboard.health.finding import Finding
from fmapboard.health.record import NotRecorded
from fmapboard.health.rule import Rule
from fmapboard.health.table import HealthRow, call_text


@dataclass(frozen=True, slots=True)
class ZeroWeightsCheck(Rule):
    """All drawn channels of all layers are constant at the first logged step.

    Why it hurts: weights of 0 get equal gradients or none, and stay equal.

    Silent: for a single layer, for layers behind one of a single channel, and for inputs of 0.

    Example: ``nn.init.zeros_(parameter)`` for all parameters.
    """

    kind: ClassVar[str] = "zero_weights"
    group: ClassVar[str] = "copied_channels"
    unless: ClassVar[tuple[str, ...]] = ("input_magnitude",)
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.record.first:
            raise NotRecorded("records of the first logged step (fmapboard_first/…)")
        table = evidence.layers
        rows: list[HealthRow] = []
        for row in table.rows:
            if row.facts.channels == 1:
                break
            if row.facts.label in evidence.record.first and is_weighted(row):
                rows.append(row)
        first = evidence.record.first
        if len(rows) < 2 or not all(_is_constant(first[row.facts.label]) for row in rows):
            return
        advice = "Initialize the weights at random, not with a constant, and check that the "
        advice += "inputs of a batch differ"
        behind = "layer" if len(rows) == 2 else f"{len(rows) - 1} layers"
        yield Finding(
            message=f"every drawn channel of {call_text(table, rows[0])} and of the {behind} "
            f"behind it is constant at {table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=rows[0].facts.label,
            value=1.0,
            healthy="other values at other places",
            meaning="The weights are 0 and stay equal, since they get equal gradients or none; or "
            "all inputs are the same, or have no content",
            advice="" if table.is_of_images else advice,
            picture=evidence.record.picture(rows[0]),
        )


def _is_constant(statistics: Mapping[str, Floats]) -> bool:
    """True if all channels are constant."""
    return bool((statistics["minimum"] == statistics["maximum"]).all())
