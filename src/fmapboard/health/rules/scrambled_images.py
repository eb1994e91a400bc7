"""Input images whose axes were mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ScrambledImagesCheck(Rule):
    """Input images in which red, green and blue take turns in each row.

    Neighbours in a row then differ by an amount that depends on their place modulo 3.

    Why it hurts: the network sees three small grey copies of each image side by side.

    Silent: for images without color, in which the three differences are alike.

    Example: ``images.view(-1, 3, 32, 32)`` of images of shape [N, 32, 32, 3].

    Attributes:
        ratio: least over largest of the three mean differences, up to which it is reported.
    """

    ratio: float = thresholds.INTERLEAVED.value
    kind: ClassVar[str] = "scrambled_images"
    group: ClassVar[str] = "input_scale"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        inputs = evidence.image_numbers
        turns = [numbers["interleaved"] for numbers in inputs if "interleaved" in numbers]
        if not turns:
            return
        ratio = float(np.median(turns))
        if not ratio < self.ratio:
            return
        steps = evidence.record.network_input
        yield Finding(
            message="the input images look scrambled, as if red, green and blue took turns in "
            f"each row: every third difference between neighbours is {rounded(ratio)} times the "
            f"largest (median of {len(steps)} logged steps)",
            since_step=min(steps),
            value=ratio,
            healthy="near 1",
            meaning="Images of shape [H, W, 3] were made [3, H, W] with view or reshape",
            advice="Use permute(2, 0, 1) in place of view or reshape, and look at the "
            "input's picture",
            picture=evidence.drawn_input,
        )
