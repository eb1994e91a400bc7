"""One batch that is used at each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SameBatchCheck(Rule):
    """The same images, in any order, at every logged step.

    Why it hurts: the network learns one batch by heart.

    Silent: with L-BFGS, whose line search needs one batch, and where images are constant or all
    the same, which has its own rule. To overfit one batch on purpose is a good test, so it is a
    note.

    Example: ``images, labels = next(iter(loader))`` in the loop, without shuffling.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "same_batch"
    unless: ClassVar[tuple[str, ...]] = ("constant_images", "identical_images")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        batches = {}
        for step, facts in evidence.facts.items():
            if facts.batch_digest is not None:
                batches[step] = facts.batch_digest
        if not batches:
            evidence.check_images()
        if len(batches) < self.least or len(set(batches.values())) > 1:
            return
        if evidence.newest.rates is None:
            return  # L-BFGS
        steps = list(batches)
        causes = "One batch is kept and used at each step"
        if min(later - step for step, later in pairwise(steps)) > 1:
            causes += (
                ", or the batches come in the same order in each epoch, and from one logged "
                "step to the next all of them were used, so that the same one is logged each time"
            )
        yield Finding(
            message=f"the batch of {evidence.newest.batch} images is the same at each of "
            f"{len(steps)} {evidence.record.steps_called}, since step {steps[0]}",
            since_step=steps[0],
            value=len(steps),
            healthy="other images at each step",
            meaning=causes,
            advice="Take the batch from the loader inside the loop, with shuffle=True; "
            "intended if you overfit one batch, or if all images fit into one",
            picture=evidence.drawn_input,
        )
