"""An output that is 0 for every input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, lasting, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ZeroOutputCheck(Rule):
    """An output of the network is 0 for all inputs, at the newest four logged steps.

    Why it hurts: a ReLU at its end is off, and passes no gradient to the whole network.

    Silent: for a loss that is 0, which is no output.

    Example: a regression that ends in ``nn.ReLU()`` after a large step.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "zero_output"
    group: ClassVar[str] = "dead"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="zero_output")
    cure: ClassVar[str] = "no_activation"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            since = lasting(steps, _is_zero, self.least)
            if since is None:
                continue
            yield Finding(
                message=f"the output{quoted(name)} is 0 for all inputs since step {since}",
                since_step=since,
                value=1.0,
                healthy="other values",
                meaning="If a ReLU is at its end, it is off and passes no gradient",
                advice="Leave out the activation at the end",
            )


def _is_zero(output: OutputFacts) -> bool:
    return bool(output.shape) and output.low == output.high == 0
