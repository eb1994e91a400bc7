"""Input images without content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects
from fmapboard.health.evidence import Evidence, are_all_constant
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ConstantImagesCheck(Rule):
    """All images of the batch have one value each, at half of the logged steps or the last four.

    Images have 1 or 3 channels and are an argument of the watched model; batches have two or more.

    Why it hurts: the network is trained on images without content.

    Silent: if the model receives no such images, or if some of the batch have content.

    Example: images divided by 255 twice and stored as integers, so that all pixels are 0.
    """

    kind: ClassVar[str] = "constant_images"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        found = evidence.faulty_batches(are_all_constant)
        if found is None:
            return
        is_black = False
        for numbers in evidence.image_numbers[-1:]:
            is_black = numbers["minimum"] == numbers["maximum"] == 0
        which = "black, every value is 0" if is_black else "constant, each of one value only"
        yield Finding(
            class_="warning",
            message=f"all {found.size} images of the batch are {which}, {found.text}",
            since_step=found.since,
            value=found.size,
            meaning="The network is trained on images without content: they are not loaded, "
            "or lost by a conversion or a normalization",
            advice="Look at the input in the Feature maps tab, and check the dataset",
            picture=evidence.drawn_input,
        )
