"""Images that stand twice in each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class RepeatedImagesCheck(Rule):
    """Some images are the same as another one, at the same places of every logged batch.

    Why it hurts: images are repeated when the batch is put together, so that there are fewer
    different ones than it seems.

    Silent: if all images of the batch are the same. Pairs that a loss compares on purpose have it
    too, so it is a note.

    Example: a cache that returns one image for several indices.

    Attributes:
        least: number of logged steps of which all must have the same places.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "repeated_images"
    group: ClassVar[str] = "identical_images"
    unless: ClassVar[tuple[str, ...]] = ("identical_images",)

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        evidence.check_batches()
        every = evidence.facts.items()
        batches = {step: facts for step, facts in every if (facts.batch or 0) >= 2}
        if len(batches) < self.least:
            return
        alike = [set(facts.identical_images or ()) for facts in batches.values()]
        pairs = set.intersection(*alike)
        if not pairs:
            return
        places = {index for pair in pairs for index in pair}
        first, second = min(pairs)
        is_cut = any(facts.left_out.get("identical_images") for facts in batches.values())
        least = "at least " if is_cut else ""
        yield Finding(
            message=f"{least}{len(places)} images of the batch are the same as "
            f"another one, at the same places of the batch at each of {len(batches)} logged "
            f"steps, such as images {first} and {second} (counted from 0)",
            since_step=min(batches),
            value=len(places),
            healthy="no image twice at the same places",
            meaning="Intended if the loss compares or averages over copies, such as the pairs "
            "of contrastive learning or several samples of one image. Otherwise images are "
            "repeated when the batch is put together: a cache that returns one image for "
            "several indices, or augmentation that is not applied",
            advice="Unless the copies are intended, check the dataset and its collate function",
            picture=evidence.drawn_input,
        )
