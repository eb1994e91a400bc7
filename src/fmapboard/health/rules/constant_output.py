"""One output for every input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class ConstantOutputCheck(Rule):
    """Every output is nearly the same for all inputs, at the last two logged steps but the first.

    Why it hurts: the network has collapsed, or nothing of its input reaches its end.

    Silent: for single units, since a critic's answers to a batch of one kind are alike, unless
    labels of both kinds are known, the loss pulls them apart, or they are maps as large as the
    images.

    Example: a learning rate so large that all channels of a layer died.

    Attributes:
        spread: mean over the units of (standard deviation over the images) / (mean magnitude), of
            every output, up to which it is reported.
        images: least number of images.
    """

    spread: float = thresholds.OUTPUT_SPREAD.value
    images: int = thresholds.OUTPUT_IMAGES.value
    kind: ClassVar[str] = "constant_output"
    unless: ClassVar[tuple[str, ...]] = ("empty_code",)

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        constant = evidence.constant_output(self.spread, self.images)
        if constant is None:
            return
        text = f"the output is nearly the same for all inputs since step {constant.since}: it "
        text += f"varies by {rounded(constant.spread)} of its magnitude"
        lost_at = evidence.loses_inputs
        advice = "Look for the first layer whose maps are all alike, and check the labels"
        picture = ""
        if lost_at is not None:
            table = evidence.layers
            text += f"; {call_text(table, lost_at)} is the first layer whose channels hardly "
            text += f"vary at {table.step_text(table.steps[0])}"
            advice = "Print what this layer receives for two inputs, and its weights"
            picture = evidence.record.picture(lost_at)
        yield Finding(
            message=text,
            since_step=constant.since,
            layer=lost_at.facts.label if lost_at else None,
            value=constant.spread,
            healthy=f"{thresholds.OUTPUT_SPREAD.healthy}",
            meaning="The network has collapsed, or nothing of the input reaches its end: dead or "
            "saturated layers, a vanishing signal, or labels that do not depend on the input",
            advice=advice,
            picture=picture,
        )
