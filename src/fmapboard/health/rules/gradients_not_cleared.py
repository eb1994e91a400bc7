"""Gradients of an earlier step that a backward pass adds to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class GradientsNotClearedCheck(Rule):
    """Gradients that still held those of an earlier optimizer step when a backward pass began.

    Two logged steps besides the first must have it; one, if only two steps are logged.

    Why it hurts: each step then adds the gradients of all steps before it, and the weights run
    away in the directions of the first batches.

    Silent: while gradients are accumulated over several passes before a step of the optimizer.

    Example: a loop without ``optimizer.zero_grad()``.
    """

    kind: ClassVar[str] = "gradients_not_cleared"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    cure: ClassVar[str] = "zero_grad"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        later = list(evidence.facts.items())[1:]
        found = [(step, facts) for step, facts in later if facts.not_cleared]
        if not found or len(found) < min(thresholds.LASTING.value, len(later)):
            return
        since = found[0][0]
        last = found[-1][1]
        names = last.not_cleared or ()
        count = last.count("not_cleared")
        parameters = "parameter" if count == 1 else "parameters"
        yield Finding(
            class_="warning",
            message=f"gradients of {count} {parameters} were not cleared before the backward "
            f"pass at {len(found)} of {len(later)} {evidence.record.steps_called} after the "
            f"first, since step {since}: {named(names, count)}",
            since_step=since,
            parameter=names[0],
            value=count,
            meaning="Each step then adds the gradients of all steps before it",
            advice="Call optimizer.zero_grad() in every step, for all parameters of the model",
        )
