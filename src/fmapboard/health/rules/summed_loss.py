"""A loss that is a sum, or was multiplied otherwise, and whose steps are too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SummedLossCheck(Rule):
    """The gradient is that of many times the mean loss, with SGD, and the loss does not fall.

    The factor is read from the output and its gradient; that of a GradScaler is not counted.

    Why it hurts: each step of SGD is as many times larger as with the mean.

    Silent: if the loss falls, and with optimizers such as Adam, which divide the gradient by its
    usual size.

    Example: ``F.cross_entropy(logits, labels, reduction="sum")`` with a learning rate of 0.1.

    Attributes:
        factor: number of means from which it is reported.
    """

    factor: float = thresholds.SUMMED.value
    kind: ClassVar[str] = "summed_loss"
    group: ClassVar[str] = "initial_loss"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True
    cure: ClassVar[str] = "lower_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if {name for facts in evidence.facts.values() for name in facts.optimizers} != {"SGD"}:
            return
        if not evidence.is_stuck and evidence.lost_since is None:
            return
        for name, steps in evidence.outputs.items():
            for step, output in steps.items():
                factor = output.factor
                if factor is None or output.loss is None or factor < self.factor:
                    continue
                yield Finding(
                    message=f"the loss of the output{quoted(name)} is {rounded(factor)} times its "
                    f"mean per row: {factor * output.loss:.3g} instead of {output.loss:.3g} at "
                    f"step {step}",
                    since_step=step,
                    value=factor,
                    healthy="the mean",
                    meaning="The loss is summed over the batch or multiplied, and a step of SGD is "
                    "as many times larger",
                    advice='Use reduction="mean", or divide the learning rate by '
                    f"{rounded(factor)}",
                )
                break
