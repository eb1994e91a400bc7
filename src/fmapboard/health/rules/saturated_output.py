"""An output that is at an end of its range."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, OutputSteps, lasting, quoted, spell
from fmapboard.health.finding import Finding, rounded, whole_percent
from fmapboard.health.rule import Rule
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
            last = list(steps.values())[-1]
            ends = f"an end of its range, {last.low:.3g} to {last.high:.3g},"
            pulled = self._pulled_share(steps)
            if pulled is not None:
                since, when = spell(steps, lambda output: output.pulled >= self.pulled)
                text = f"{whole_percent(pulled)} of the values of the output{quoted(name)} are at "
                text += f"{ends} and the loss pulls them further, {when}"
            else:
                begin = self._at_end(evidence, steps)
                if begin is None:
                    continue
                since = begin
                text = f"the output{quoted(name)} goes to {ends} since step {since}"
            yield Finding(
                message=text,
                since_step=since,
                value=pulled or last.high,
                healthy=f"below {whole_percent(self.pulled)} at an end",
                meaning="The targets are out of reach: a sigmoid, tanh or ReLU is at its end",
                advice="Scale the targets to the range of the output, or leave out its activation",
            )

    def _pulled_share(self, steps: OutputSteps) -> float | None:
        """Share of the values that are at an end and pulled further; None if they are too few."""
        last = list(steps.values())[-1]
        late = max(self.least, len(steps) // 2)
        if late > len(steps) or last.rows_are == "probabilities" or not last.low < last.high:
            return None
        pulled = float(np.median([output.pulled for output in steps.values()][-late:]))
        if not pulled >= self.pulled:
            return None
        near = thresholds.AT_END.value
        ends = {round(end) for end in (last.low, last.high) if abs(end - round(end)) < near}
        return pulled if ends & {-1, 0, 1} else None

    def _at_end(self, evidence: Evidence, steps: OutputSteps) -> int | None:
        """Since when all values are near one end, or the targets beyond them; None if not so."""
        last = list(steps.values())[-1]
        if any(max(output.high, -output.low) > 1 for output in steps.values()):
            return None  # it is free
        since = lasting(steps, lambda output: max(output.low, -output.high) >= self.end, self.least)
        is_near = since is not None or max(last.high, -last.low) >= self.end
        if not is_near:
            return None
        if since is None or last.shape[1:2] in ((), (1,)):  # a single unit may be a critic's
            return lasting(steps, lambda output: output.away >= self.away, self.least)
        return since


def _at_1(evidence: Evidence) -> Finding:
    """A sigmoid is exactly 1 for every input, since the first logged step."""
    table = evidence.layers
    last = table.rows[-1]
    lowest = float(np.nanmin(table.columns["minimum"][:, -1]))
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
