"""Outputs and targets that are broadcast against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class AveragedTargetsCheck(Rule):
    """The loss pulls all outputs of a batch to one value, another one at each logged step.

    Why it hurts: outputs of shape [N, 1] and targets of shape [N] are broadcast to [N, N], and
    the network learns the mean of the targets.

    Silent: for the same number at each step, which is the label of a critic's batch.

    Example: ``F.mse_loss(model(x), y)`` with ``y`` of shape [N].

    Attributes:
        least: number of logged steps with such a value.
    """

    least: int = thresholds.AVERAGED_STEPS.value
    kind: ClassVar[str] = "averaged_targets"
    group: ClassVar[str] = "constant_output"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            targets: dict[int, float] = {}
            for step, output in steps.items():
                if output.target is not None:
                    targets[step] = output.target
            if len(targets) < self.least or _are_of_critic(list(targets.values())):
                continue
            first, second = list(targets)[:2]
            yield Finding(
                message=f"the loss pulls all outputs{quoted(name)} to one value, to "
                f"{rounded(targets[first])} at step {first} and to {rounded(targets[second])} "
                f"at step {second}",
                since_step=first,
                value=len(targets),
                healthy="a target for each input",
                meaning="Outputs of shape [N, 1] and targets of shape [N], or the reverse, "
                "are broadcast to [N, N]: the network learns the mean of the targets",
                advice="Give both the same shape, such as output.squeeze(1)",
            )
            return


def _are_of_critic(targets: Sequence[float]) -> bool:
    """True for the same number at each step: the label of a batch."""
    values = np.array(targets)
    return bool(np.ptp(values) < thresholds.SAME_TARGET.value * np.abs(values).max())
