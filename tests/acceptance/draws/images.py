"""Batches of images with targets that several subjects share."""

from __future__ import annotations

from collections.abc import Callable

import data
import torch
from data import Draw, P, changed
from torch import Generator, Tensor
from torch.nn import functional

ALONG = torch.arange(32.0)

DIGITS = changed(data.digits, lambda x: (x - 0.1307) / 0.3081)


def soft_tissue(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """HU in the window from -160 to 240, scaled to [0, 1]."""
    images, mask = data.hounsfield(generator, count)
    return (images.clamp(-160, 240) + 160) / 400, mask


GRID = torch.stack(torch.meshgrid(ALONG, ALONG, indexing="xy"))


def regions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Four photographs in one, and the class of each pixel; 255 at the seams."""
    images, labels = P(generator, 4 * count)
    images = functional.avg_pool2d(images, 2).view(count, 2, 2, 3, 16, 16)
    truth = labels.view(count, 2, 2).repeat_interleave(16, 1).repeat_interleave(16, 2)
    truth[:, 15:17], truth[:, :, 15:17] = 255, 255
    return images.permute(0, 3, 1, 4, 2, 5).reshape(count, 3, 32, 32), truth


def relabelled(draw: Draw, change: Callable[[Tensor], Tensor]) -> Draw:
    """``change`` is applied to the labels or masks."""

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels, *rest = draw(generator, count)
        return images, change(labels), *rest

    return again


def keypoints(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """The centre of a disc, -1 to 1."""
    images, _, discs, _ = data.scenes(generator, count)
    return images, discs[:, :2] / 16 - 1
