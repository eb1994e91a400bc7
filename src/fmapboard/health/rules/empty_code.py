"""A variational code that tells nothing of its input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, OutputSteps
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class EmptyCodeCheck(Rule):
    """Two outputs of the same few units stay next to 0, beside a larger output.

    Why it hurts: if they are mean and log-variance of an autoencoder's code, the divergence
    outweighs the error of the output, and the code tells nothing of the input.

    Silent: if there is no larger output with as many rows, and while the magnitudes still grow.

    Example: the divergence summed over the units, the error of the pixels averaged.

    Attributes:
        code: magnitude up to which the values tell nothing.
        least: number of logged steps at the end of the run at which they must be so.
    """

    code: float = thresholds.CODE.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "empty_code"
    group: ClassVar[str] = "constant_output"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        every = evidence.outputs
        shapes = {name: list(steps.values())[-1].shape for name, steps in every.items()}
        small = {name: shape for name, shape in shapes.items() if len(shape) == 2}
        for (name, shape), (other, same) in pairwise(small.items()):
            pictures = [
                larger
                for larger in shapes.values()
                if larger[:1] == shape[:1] and math.prod(larger) > 2 * math.prod(shape)
            ]
            sizes = [_magnitudes(every[name]), _magnitudes(every[other])]
            is_code = shape == same and bool(pictures)
            if not is_code or not all(map(self._tells_nothing, sizes)):
                continue
            largest = max(magnitudes[-1] for magnitudes in sizes)
            yield Finding(
                message=f"an empty code: the outputs `{name}` and `{other}` are within "
                f"±{rounded(largest)} of 0 for all inputs",
                value=largest,
                healthy=f"some beyond ±{self.code}",
                meaning="If they are mean and log-variance of an autoencoder's code, it tells "
                "nothing of the input: its divergence outweighs the error of the output",
                advice="Weigh the divergence less, or sum the error over the pixels as well",
            )

    def _tells_nothing(self, magnitudes: Sequence[float]) -> bool:
        """True if values, of which these are the magnitudes at each step, stay near 0."""
        return max(magnitudes[-self.least :]) <= self.code and magnitudes[-1] <= magnitudes[0]


def _magnitudes(steps: OutputSteps) -> list[float]:
    """The largest magnitude of an output at each step."""
    return [max(-output.low, output.high) for output in steps.values()]
