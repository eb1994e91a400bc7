"""Batches and losses with a fault each, for the fourth acceptance set."""

from __future__ import annotations

import torch
from acceptance_data import Draw, clips, photos, tones
from torch import Generator, Tensor, nn
from torch.nn import functional


def transparent(images: Tensor) -> Tensor:
    """RGBA pictures are multiplied by an alpha of 0 and standardized."""
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    return (images * torch.zeros(len(images), 1, 1, 1) - mean) / 0.225


def undecoded(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A film reader that fails returns its buffer as it was allocated."""
    shown, labels = clips(generator, count)
    return torch.zeros_like(shown), labels


def two_only(images: Tensor) -> Tensor:
    """The index is taken modulo the number of workers, 2."""
    return images[torch.arange(len(images)) % 2]


def repeated(images: Tensor) -> Tensor:
    """``repeat`` of one sound where ``stack`` of all was meant."""
    return images[3:4].repeat(len(images), 1, 1)


def gamma(images: Tensor) -> Tensor:
    """Gamma correction after standardizing: a root of what is negative."""
    return images.pow(1 / 2.2)


def ignored(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Only sure classes count; a batch without any divides 0 by 0."""
    loss, sure = functional.cross_entropy(model(images), labels, reduction="none"), labels < 5
    return (loss * sure).sum() / sure.sum()


def summed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy that is summed over the batch; the rate was chosen for a mean."""
    return functional.cross_entropy(model(images), labels, reduction="sum")


def by_class(draw: Draw) -> Draw:
    """A sampler that fills each batch from one folder: all its pictures are of one class."""
    kept: list[Tensor] = []
    turn = 0

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal turn
        if not kept:
            kept.extend(draw(generator, 1024))
        images, labels = kept
        turn += 1
        chosen = (labels == turn % 8).nonzero()[:, 0]
        chosen = chosen[torch.randint(len(chosen), (count,), generator=generator)]
        return images[chosen], labels[chosen]

    return again


def outliers(draw: Draw) -> Draw:
    """Each fifth batch has one broken file whose values are 60 times too large."""
    turn = 0

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal turn
        turn += 1
        images, *rest = draw(generator, count)
        if turn % 5 == 0:
            images[0] *= 60
        return images, *rest

    return again


def microphone(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Samples of 16 bits as they are, -32768 to 32767."""
    waves, labels = tones(512)(generator, count)
    return (waves * 32767).round(), labels


def mean_only(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Caffe's order of things: 0 to 255, blue first, only the mean subtracted."""
    images, labels = photos(32, "unit")(generator, count)
    mean = torch.tensor([103.939, 116.779, 123.68]).view(3, 1, 1)
    return images.flip(1) * 255 - mean, labels


def reflectance(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Reflectance of 0 to 0.4 that is divided by 10000 once more."""
    images, labels = photos(32, "unit")(generator, count)
    return images * 0.4 / 10000, labels
