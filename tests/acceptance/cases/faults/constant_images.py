"""Planted faults that ``constant_images`` names."""

from __future__ import annotations

import torch
from data import RAW, changed, clips, photos
from faults import COLOUR, bare, normed, swept
from loops import Task, seen, sixty
from losses import named
from nets.signals import clip_net
from torch import Generator, Tensor

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)


def one_colour(images: Tensor) -> Tensor:
    return images.mean((1, 2, 3), keepdim=True).expand_as(images).clone()


def padded(images: Tensor) -> Tensor:
    """A collate function that pads, and copies the images into a slice of length 0."""
    sheet = torch.zeros(len(images), 3, 40, 40)
    sheet[:, :, 40:72, 40:72] = images[:, :, :0, :0]
    return sheet


def as_bytes(images: Tensor) -> Tensor:
    """Divided by 255 as integers, then standardized."""
    return ((images.byte() // 255).float() - MEAN) / 0.23


def undecoded(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A film reader that fails returns its buffer as it was allocated."""
    shown, labels = clips(generator, count)
    return torch.zeros_like(shown), labels


CASES = seen(
    "2026-11-22T18:59",
    swept("one colour per image", draw=changed(COLOUR, one_colour)),
    expected="constant_images",
)
CASES += seen(
    "2026-11-23T07:48",
    normed(changed(photos(72), padded), padding=sixty("collate copies nothing")),
    bare(changed(RAW, as_bytes), integer_division=sixty("images // 255")),
    normed(changed(RAW, lambda x: (x + 1).clamp(0, 1)), clamped=sixty("0 to 255 clamped to 1")),
    expected="constant_images",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("3-D CNN", clip_net, undecoded, named).cases(undecoded=sixty("empty buffers", batch=8)),
    expected="constant_images",
)
