"""Planted faults of which a run shows nothing."""

from __future__ import annotations

import torch
from data import Draw, changed
from faults import COLOUR, swept
from loops import seen
from torch import Generator, Tensor


def shuffled(generator: Generator, count: int) -> tuple[Tensor, ...]:
    images, labels = COLOUR(generator, count)
    return images, labels[torch.randperm(len(labels))]


TWICE: Draw = changed(COLOUR, lambda images: (images - 0.45) / 0.22)

CASES = seen(
    "2026-11-22T18:59",
    swept("random labels", draw=shuffled),
    swept("normalized twice", draw=TWICE),
    swept("channels swapped", draw=changed(COLOUR, lambda images: images.flip(1))),
    expected="(none)",
)
