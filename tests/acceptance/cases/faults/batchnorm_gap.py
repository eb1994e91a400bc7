"""Planted faults that ``batchnorm_gap`` names.

The loss in eval mode of "modalities", "outliers" and "slow_statistics" is 2 to 13 times that in
training mode; that of "by_class" is only 1.1 times.
"""

from __future__ import annotations

from functools import partial

import torch
from data import UNIT, Draw, P, changed
from faults import each, normed
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import classifier, encoder, with_norm
from optimizers import ADAM, SGD
from torch import Generator, Tensor, nn

LONG = {"steps": 96, "every": 8}


def momentum(value: float) -> nn.Module:
    """BatchNorm with this momentum, on photographs of other units than mean 0, deviation 1."""
    return each(with_norm(), nn.BatchNorm2d, lambda n: setattr(n, "momentum", value))


def old_statistics() -> nn.Module:
    """Running statistics of pixels up to 255 in a network that now gets 0 to 1; momentum 1e-3."""
    model = momentum(1e-3)
    model[0][1].running_mean.fill_(20.0)
    model[0][1].running_var.fill_(4000.0)
    return model


def dark(images: Tensor) -> Tensor:
    """From a dark, noisy camera."""
    return images * 0.1 - 2 + 0.02 * torch.randn(images.shape)


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


class Modalities(nn.Module):
    """One encoder for pictures and for distances in metres, which share its BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.last = encoder(32), nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        far = 12 - 8 * x.mean(1, keepdim=True).expand_as(x)
        return self.last(torch.cat([self.back(x), self.back(far)], 1))


def broken(images: Tensor) -> Tensor:
    """One broken file whose values are 60 times too large."""
    images[0] *= 60
    return images


CASES = seen(
    "2026-11-23T07:48",
    Task("encoder CNN", partial(momentum, 1e-4), UNIT, named).cases(
        norm_slow=sixty("momentum 1e-4")
    ),
    Task("encoder CNN", partial(momentum, 0.0), P, named).cases(norm_still=sixty("momentum 0")),
    expected="batchnorm_gap",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("residual CNN", classifier, changed(P, dark, since=2, every=2), named).cases(
        two_cameras=sixty("batches of two kinds", SGD, steps=90, every=9)
    ),
    Task("encoder CNN", old_statistics, UNIT, named).cases(
        old_statistics=sixty("statistics of other units, momentum 1e-3")
    ),
    expected="batchnorm_gap",
)
CASES += seen(
    "2026-11-23T10:59",
    normed(by_class(P), by_class=sixty("batches of one class each", SGD, **LONG)),
    Task("encoder for two modalities", Modalities, UNIT, named).cases(
        modalities=sixty("one BatchNorm for pictures and metres", ADAM, **LONG)
    ),
    normed(
        changed(P, broken, since=5, every=5),
        outliers=sixty("a broken file in each fifth batch", **LONG),
    ),
    Task("encoder CNN", partial(momentum, 1e-3), changed(UNIT, lambda x: x * 0.3), named).cases(
        slow_statistics=sixty("momentum 0.001, dark pictures of 0 to 0.3", SGD, **LONG)
    ),
    expected="batchnorm_gap",
)
