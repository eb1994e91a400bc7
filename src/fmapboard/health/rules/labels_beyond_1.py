"""Labels that a binary loss cannot take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import LossKind
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import BINARY, Evidence, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class LabelsBeyond1Check(Rule):
    """Labels of a binary cross-entropy are beyond 1, at two logged steps.

    Why it hurts: the loss has no least value. It falls below 0 while the logits grow.

    Silent: where the loss cannot be read from the gradient.

    Example: a mask whose foreground is 255, or labels of three classes given to
    ``BCEWithLogitsLoss``.
    """

    kind: ClassVar[str] = "labels_beyond_1"
    group: ClassVar[str] = "loss_climbed"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            beyond = {
                step: output for step, output in steps.items() if output.kind == LossKind.BEYOND_1
            }
            if len(beyond) < thresholds.LASTING.value:
                continue
            largest = 0
            for output in beyond.values():
                labels = [label for label, _ in output.labels or ()]
                largest = max([largest, *labels] if labels else [largest, 2])
            since = min(beyond)
            yield Finding(
                class_="warning",
                message=f"labels of the output{quoted(name)} are up to {largest} since step "
                f"{since}, and the loss ({BINARY}) expects 0 to 1",
                since_step=since,
                value=largest,
                meaning="The loss has no least value: it falls below 0 while the logits grow",
                advice=f"Divide a mask by {largest}; for several classes, use cross_entropy",
            )
