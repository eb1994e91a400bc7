"""Weights that never change although an optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class UnchangedWeightsCheck(Rule):
    """Weights that are bitwise the same after several steps that had to change them.

    An optimizer applied each of these steps at a learning rate above 0, with a gradient that is not
    zero.

    Why it hurts: these layers do not learn.

    Silent: for biases, whose gradient in front of a BatchNorm is rounding noise.

    Example: weights in bfloat16 with a learning rate of 1e-5, whose updates are rounded away.

    Attributes:
        least: number of logged steps without a change.
    """

    least: int = thresholds.UNCHANGED_STEPS.value
    kind: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="unchanged_weights")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        last = evidence.newest
        found = {}
        for name, unchanged in last.unchanged.items():
            is_bias = name.rpartition(".")[2] == "bias"
            lasts = unchanged.steps >= self.least
            if lasts and not is_bias and not evidence.has_zero_gradient(name):
                found[name] = unchanged
        if not found:
            return
        names = sorted(found, key=lambda name: found[name].since)
        first = names[0]
        same_as = found[first].since
        since = next((step for step in evidence.facts if step > same_as), same_as)
        rate = f" at a learning rate of {last.rates[1]:.2g}" if last.rates else ""
        weights = "weights" if len(found) == 1 else f"{len(found)} weights"
        yield Finding(
            class_="warning",
            message=f"{weights} unchanged since step {since}, over {found[first].steps} "
            f"logged steps that the optimizer applied{rate}: {named(names)}",
            since_step=since,
            parameter=first,
            parameters=tuple(names),
            value=found[first].steps,
            meaning="Updates are lost: they are smaller than the weights' rounding (a tiny "
            "rate, or weights in half precision), or the weights are restored after it",
            advice="Keep the weights in float32, or raise the learning rate",
        )
