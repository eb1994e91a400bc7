"""Add the attribution of a class to the recorded images of ``visualize``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from torch import Tensor, nn

from fmapboard.capture.class_attribution import class_attributions
from fmapboard.capture.step_parts import PendingStep
from fmapboard.records import Attribution, StepData

SIDE = 256
"""Length in px of the longer side of a picture; smaller inputs are not enlarged."""


def with_attributions(
    steps: Iterable[PendingStep], model: nn.Module, images: Tensor, number: int | None
) -> Iterator[PendingStep]:
    """The recorded images of a batch together with their attribution.

    Args:
        steps: One per image, in order.
        model: Any classifier.
        images: [B, C, H, W], as the model takes them; each runs alone.
        number: The class; None for the class with the highest score of each image.

    Raises:
        ConfigurationError: The model does not return scores, or has no such class.
    """
    for step, image in zip(steps, images, strict=True):
        found = class_attributions(model, image[None], number)
        yield _added(step, found)


def _added(step: PendingStep, found: tuple[Attribution, ...]) -> PendingStep:
    def to_host() -> StepData:
        data = step.to_host()
        drawn = data.inputs[0] if data.inputs else None  # de-normalized
        own = tuple(replace(one, image=drawn or one.image) for one in found)
        return replace(data, attributions=own)

    return replace(step, to_host=to_host)
