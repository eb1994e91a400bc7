"""An optimizer that is made anew at each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NewOptimizerCheck(Rule):
    """At each logged step after the first, another optimizer steps for the first time.

    Why it hurts: momentum and averages begin anew each time, so that they average nothing, and each
    step of Adam moves every weight by the whole learning rate.

    A warning if the loss is known and does not fall, else a note.

    Silent: for optimizers without momentum and averages, such as plain SGD, and for one that is
    made anew only now and then, as for each phase of a training.

    Example: ``optimizer = Adam(model.parameters())`` inside the loop.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "new_optimizer"
    group: ClassVar[str] = "update_ratio"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        stepped = {step: facts for step, facts in evidence.facts.items() if facts.optimizers}
        later = list(stepped.items())[1:]
        if len(stepped) < self.least or not all(facts.new_optimizers for _, facts in later):
            return
        is_stuck = bool(evidence.losses) and not evidence.falls()
        names = " and ".join(later[-1][1].new_optimizers)
        yield Finding(
            class_="warning" if is_stuck else "note",
            message=f"{names} steps for the first time at each of {len(later)} "
            f"{evidence.record.steps_called} after the first, since step {later[0][0]}",
            since_step=later[0][0],
            value=len(later),
            healthy="" if is_stuck else "one optimizer for the whole training",
            meaning="The optimizer is made anew at each step: its momentum and averages begin "
            "again, and average nothing",
            advice="Make the optimizer once, before the loop; change its learning rate with a "
            "scheduler or in optimizer.param_groups",
        )
