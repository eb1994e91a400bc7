"""Labels that a binary loss cannot take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import LossKind, OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import (
    BINARY,
    Evidence,
    OutputSteps,
    quoted,
    spell,
    with_known_loss,
)
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule

_MEANING = "The loss has no least value: it falls below 0 while the logits grow"


@dataclass(frozen=True, slots=True)
class LabelsBeyond1Check(Rule):
    """Labels of a binary cross-entropy are above 1 or below 0, at two logged steps.

    Why it hurts: the loss has no least value. It falls below 0 while the logits grow.

    Silent: where the loss cannot be read from the gradient.

    Example: a mask whose foreground is 255, labels of three classes, or labels of -1 and 1, given
    to ``BCEWithLogitsLoss``.
    """

    kind: ClassVar[str] = "labels_beyond_1"
    group: ClassVar[str] = "loss_climbed"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            known = with_known_loss(steps)
            above = _of_kind(known, LossKind.BEYOND_1)
            below = _of_kind(known, LossKind.BELOW_0)
            if len(above) >= thresholds.LASTING.value:
                labels = [label for output in above for label, _ in output.labels or ()]
                largest = max(labels, default=2)
                since, when = spell(known, lambda output: output.kind == LossKind.BEYOND_1)
                yield Finding(
                    class_="warning",
                    message=f"labels of the output{quoted(name)} are up to {largest} {when}, and "
                    f"the loss ({BINARY}) expects 0 to 1",
                    since_step=since,
                    value=largest,
                    meaning=_MEANING,
                    advice=f"Divide a mask by {largest}; for several classes, use cross_entropy",
                )
            elif len(below) >= thresholds.LASTING.value:
                since, when = spell(known, lambda output: output.kind == LossKind.BELOW_0)
                yield Finding(
                    message=f"labels of the output{quoted(name)} are -1 and 1 {when}, and the "
                    f"loss ({BINARY}) expects 0 and 1",
                    since_step=since,
                    value=-1,
                    meaning=_MEANING,
                    advice="Give it (labels + 1) / 2, or use a hinge loss",
                )


def _of_kind(steps: OutputSteps, kind: str) -> list[OutputFacts]:
    """The output at the steps at which the loss is of this kind."""
    return [output for output in steps.values() if output.kind == kind]
