"""Labels that a binary loss cannot take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import LossKind
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import BINARY, Evidence, OutputSteps, quoted
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
            above = _labels(steps, LossKind.BEYOND_1)
            below = _labels(steps, LossKind.BELOW_0)
            if len(above) >= thresholds.LASTING.value:
                largest = max(max(labels, default=2) for labels in above.values())
                yield Finding(
                    class_="warning",
                    message=f"labels of the output{quoted(name)} are up to {largest} since step "
                    f"{min(above)}, and the loss ({BINARY}) expects 0 to 1",
                    since_step=min(above),
                    value=largest,
                    meaning=_MEANING,
                    advice=f"Divide a mask by {largest}; for several classes, use cross_entropy",
                )
            elif len(below) >= thresholds.LASTING.value:
                yield Finding(
                    message=f"labels of the output{quoted(name)} are -1 and 1 since step "
                    f"{min(below)}, and the loss ({BINARY}) expects 0 and 1",
                    since_step=min(below),
                    value=-1,
                    meaning=_MEANING,
                    advice="Give it (labels + 1) / 2, or use a hinge loss",
                )


def _labels(steps: OutputSteps, kind: str) -> dict[int, list[int]]:
    """Step at which the loss is of this kind -> its labels."""
    found = {}
    for step, output in steps.items():
        if output.kind == kind:
            found[step] = [label for label, _ in output.labels or ()]
    return found
