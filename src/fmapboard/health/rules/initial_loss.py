"""A loss that starts far above that of guessing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, is_over_classes, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class InitialLossCheck(Rule):
    """A cross-entropy at step 0 far above that of guessing, ln(number of classes).

    Why it hurts: the network starts out sure of wrong answers, and spends its first steps on
    making them smaller.

    Silent: if step 0 is not logged, and if the last known loss is as far below it:
    a cosine head, whose scale makes the logits large on purpose, soon gets there.

    Example: a last layer with initial weights 60 times too large.

    Attributes:
        factor: of ln(classes), from which it is reported, if it is also above ln(classes) + 1.
    """

    factor: float = thresholds.INITIAL_LOSS.value
    kind: ClassVar[str] = "initial_loss"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            classes = 1
            loss = 0.0
            for step, output in steps.items():
                at_0 = _loss_at_0(step, output)
                if is_over_classes(output) and at_0 is not None:
                    classes = output.classes or 1
                    loss = at_0
                    break
            guessed = math.log(classes)
            known = [output.loss for output in steps.values() if output.loss is not None]
            if loss < max(self.factor * guessed, guessed + 1):
                continue
            if known and known[-1] < guessed / self.factor:
                continue
            yield Finding(
                message=f"the loss of the output{quoted(name)} is {loss:.3g} at step 0, with "
                f"{classes} classes",
                since_step=0,
                value=loss,
                healthy=f"near ln {classes} = {guessed:.3g}, that of guessing",
                meaning="The initial logits are large, so the network starts out sure of "
                "wrong answers: the last layer's weights or the inputs are not scaled, or the "
                "labels are not those that loaded weights were trained on",
                advice="Initialize the last layer with small weights, and scale the inputs",
            )


def _loss_at_0(step: int, output: OutputFacts) -> float | None:
    """The loss at step 0 if this step tells it: it may be certain only at a later one."""
    if step == 0:
        return output.loss
    if output.held is not None and output.held.step == 0:
        return output.held.loss
    return None
