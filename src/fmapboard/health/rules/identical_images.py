"""Batches of one image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects
from fmapboard.health.evidence import Evidence, are_all_identical
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class IdenticalImagesCheck(Rule):
    """All images of the batch are bitwise the same, at half of the logged steps or the last four.

    Why it hurts: the network sees one image only.

    Silent: for batches of one image, and where all images are constant, which has its own rule.

    Example: a dataset whose ``__getitem__`` ignores its index.
    """

    kind: ClassVar[str] = "identical_images"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        found = evidence.faulty_batches(are_all_identical)
        if found is None:
            return
        yield Finding(
            class_="warning",
            message=f"all {found.size} images of the batch are the same {found.text}",
            since_step=found.since,
            value=found.size,
            meaning="The dataset returns one image for every index, or one image is repeated",
            advice="Check the dataset and its sampler; if you overfit on one image on purpose, "
            "switch this check off",
            picture=evidence.drawn_input,
        )
