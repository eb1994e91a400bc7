"""An output that is at an end of its range."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding, rounded, whole_percent
from fmapboard.health.rule import Rule
from fmapboard.health.saturation import output_at_end
from fmapboard.health.table import call_text


@dataclass(frozen=True, slots=True)
class SaturatedOutputCheck(Rule):
    """An output within -1 to 1 that is at one of its ends, where the loss pulls it further.

    Or all of whose values are near the same end. Or a single unit behind a sigmoid that is exactly
    1 for every input, at every logged step.

    Why it hurts: the targets are out of reach of a sigmoid, tanh or ReLU at the end.

    Silent: for outputs that go beyond ±1, for probabilities, and for single units, which may be a
    critic's, unless their targets differ and are beyond all of them.

    Example: a network that ends in ``nn.Tanh()`` with targets from 0 to 255.

    Attributes:
        end: magnitude beyond which all values of an output are, with one sign.
        pulled: share of its values that are at one end, 0 or ±1, and pulled further (median over
            the second half of the run).
        away: distance of the targets in units of the largest output.
        least: number of logged steps at the end of the run that must all have it.
    """

    end: float = thresholds.OUTPUT_END.value
    pulled: float = thresholds.OUTPUT_PULLED.value
    away: float = thresholds.OUTPUT_AWAY.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "saturated_output"
    group: ClassVar[str] = "saturated"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="saturated_output")
    cure: ClassVar[str] = "no_activation"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        if len(table.steps) < self.least or table.is_of_images:
            return
        constant = evidence.constant_output()
        if constant is not None and constant.is_one and evidence.is_sigmoid_at_end:
            yield _at_1(evidence)
            return
        for name, steps in evidence.outputs.items():
            at_end = output_at_end(steps, self.pulled, self.end, self.away, self.least)
            if at_end is None:
                continue
            yield Finding(
                message=at_end.text(quoted(name)),
                since_step=at_end.since,
                value=at_end.pulled or at_end.high,
                healthy=f"below {whole_percent(self.pulled)} at an end",
                meaning="The targets are out of reach: a sigmoid, tanh or ReLU is at its end",
                advice="Scale the targets to the range of the output, or leave out its activation",
            )


def _at_1(evidence: Evidence) -> Finding:
    """A sigmoid is exactly 1 for every input, since the first logged step."""
    table = evidence.layers
    last = table.rows[-1]
    lowest = evidence.lowest_at_end
    text = "the output is exactly 1 for every input at every logged step"
    if math.isfinite(lowest) and last.facts.type != "Sigmoid":
        text += f": the last layer, {call_text(table, last)}, returns {rounded(lowest)} or more"
    return Finding(
        message=text,
        since_step=table.steps[0],
        layer=last.facts.label,
        value=1.0,
        healthy="several values",
        meaning="A sigmoid is 1 if what it receives is large, and passes no gradient then",
        advice="Scale the inputs of the network, or initialize its last layer with smaller weights",
        cure="normalized_inputs",
    )
