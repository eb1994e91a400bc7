"""Range, mean and standard deviation of the drawn input images, for the run's overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmapboard.overview_format import INPUT_NUMBERS, OverviewStep
from fmapboard.records import InputImage


def with_input(overview: OverviewStep, images: Sequence[InputImage]) -> OverviewStep:
    """The overview with `input_numbers` of the images."""
    return replace(overview, network_input=input_numbers(images))


def input_numbers(images: Sequence[InputImage]) -> dict[str, float]:
    """`INPUT_NUMBERS` of all images; only ``nonfinite`` without a finite value.

    Large images were averaged down before (see ``InputImage.block``), which lowers the standard
    deviation of fine detail.

    Args:
        images: the drawn samples, as the network received them.
    """
    if not images:
        return {}
    known = np.concatenate([image.values[np.isfinite(image.values)] for image in images])
    lost = {"nonfinite": float(sum(image.values.size for image in images) - known.size)}
    if not known.size:
        return lost
    with np.errstate(all="ignore"):
        spread = known.astype(np.float64)
        numbers = (spread.min(), spread.max(), spread.mean(), spread.std())
    of_finite = zip(INPUT_NUMBERS, numbers, strict=False)
    return lost | {name: float(number) for name, number in of_finite if np.isfinite(number)}
