"""The labels that the gradient of an output tells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fmapboard.health.evidence import OutputSteps


@dataclass(frozen=True)
class Labels:
    """The hard labels of the images, or of their pixels, of several logged steps.

    Attributes:
        classes: size of the class axis.
        first: the first of the steps.
        counts: label -> number of images, of each step.
        is_per_image: False for those of pixels, which are not independent of each other.
    """

    classes: int
    first: int
    counts: tuple[Mapping[int, int], ...]
    is_per_image: bool

    @cached_property
    def total(self) -> Counter[int]:
        """Label -> number of images."""
        total = Counter[int]()
        for by_label in self.counts:
            total.update(by_label)
        return total

    @property
    def entropy(self) -> float:
        """That of the labels over all steps, in nats: the loss of an answer without the input."""
        counts = self.total
        shares = [count / counts.total() for count in counts.values()]
        return sum(-share * math.log(share) for share in shares)


def labels_of(steps: OutputSteps) -> Labels | None:
    """The labels of an output; None if there is no hard label per image or per pixel.

    Not read are losses against candidates such as sampled negatives, whose label is the place of
    the right one: it is always 0, and the network still predicts several places.
    """
    known = {step: output for step, output in steps.items() if output.labels and output.classes}
    if not known:
        return None
    every = list(known.values())
    last = every[-1]
    counts = tuple(dict(output.labels or ()) for output in known.values())
    is_per_image = last.label_changes is not None
    predicts_several = any((output.predictions or 1) > 1 for output in every[len(every) // 2 :])
    if is_per_image and predicts_several and all(set(by_label) == {0} for by_label in counts):
        return None
    return Labels(last.classes or 0, min(known), counts, is_per_image)
