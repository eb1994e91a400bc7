"""An output that is at an end of its range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, OutputSteps, lasting, quoted
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SaturatedOutputCheck(Rule):
    """An output within -1 to 1 that is at one of its ends, where the loss pulls it further.

    Or all of whose values are near the same end.

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
        for name, steps in evidence.outputs.items():
            last = list(steps.values())[-1]
            pulled = self._pulled_share(steps)
            if pulled is not None:
                far = [step for step, output in steps.items() if output.pulled >= self.pulled]
                since = far[0] if far else None
                text = f"{whole_percent(pulled)} of the values of the output{quoted(name)} are at "
                text += "one end of its range, and the loss pulls them further"
            else:
                since = self._at_end(evidence, steps)
                if since is None:
                    continue
                text = f"the output{quoted(name)} goes to an end of its range"
            yield Finding(
                message=f"{text}, from {last.low:.3g} to {last.high:.3g} since step {since}",
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
