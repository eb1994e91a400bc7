"""Planted faults that ``nonfinite`` names."""

from __future__ import annotations

import math

import torch
from data import RAW, UNIT, Draw, P, changed
from faults import at, swept
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import encoder, unit, with_norm, without_norm
from optimizers import SLOW
from torch import Generator, Tensor, nn
from torch.nn import functional


def spoil(model: nn.Module, _: object) -> None:
    next(p for p in model.parameters() if p.ndim == 4).data[0] = math.nan


def own_range(images: Tensor) -> Tensor:
    """Each image from 0 to 1 by its own range, without a guard; one image is blank."""
    images = images.clone()
    images[3] = 0.7
    low, high = images.amin((1, 2, 3), True), images.amax((1, 2, 3), True)
    return (images - low) / (high - low)


def log_of_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy by hand, with a temperature: 0 · log(0) once a sigmoid is 1."""
    share, truth = (8 * model(images)).sigmoid(), functional.one_hot(labels, 8)
    return -(truth * share.log() + (1 - truth) * (1 - share).log()).mean()


def root_of_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss with distances to oneself; their root has an infinite slope."""
    code = model(images)
    apart = (code[:, None] - code[None]).square().sum(2).sqrt()
    same = (labels[:, None] == labels).float()
    return (same * apart + (1 - same) * (2 - apart).clamp(min=0)).mean()


class HalfPrecision(nn.Module):
    """A layer in float16 whose values outgrow it: pixels of 0 to 255 times a gain."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(150.0))
        self.first, self.rest = nn.Conv2d(3, 24, 3, 2, 1), encoder(8)[1:]
        nn.init.normal_(self.first.weight, 0, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(self.first(x * self.gain).half().float().relu())


class ByHand(nn.Module):
    """Standardized by hand over the batch: NaN for a batch of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Conv2d(3, 24, 3, 2, 1), encoder(8, norm=False)[1:]

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.rest(((y - y.mean(0)) / (y.std(0) + 1e-5)).relu())


def last_batch(draw: Draw) -> Draw:
    """Every 33rd batch is the end of an epoch and has one example."""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        return draw(generator, 1 if count % 33 == 0 else size)

    return again


class Attending(nn.Module):
    """Attention over a map with a mask of what is not padding; one example is all padding."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 32, 5, stride=4))
        self.ask, self.last = nn.Conv2d(32, 1, 1), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.back(x).flatten(2)
        hidden = functional.max_pool2d(x.abs().amax(1, keepdim=True), 8).flatten(2) < 1e-6
        score = self.ask(y.unflatten(2, (4, 4))).flatten(2).masked_fill(hidden, -math.inf)
        return self.last((y * score.softmax(2)).sum(2))


def one_empty(images: Tensor) -> Tensor:
    """The last example is empty, as a data set's missing file."""
    images[-1] = 0
    return images


def ignored(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Only sure classes count; a batch without any divides 0 by 0."""
    loss, sure = functional.cross_entropy(model(images), labels, reduction="none"), labels < 5
    return (loss * sure).sum() / sure.sum()


CASES = seen(
    "2026-11-22T18:59",
    swept("nan in a weight", after=at(30, spoil)),
    expected="nonfinite",
)
CASES += seen(
    "2026-11-23T07:48",
    Task("encoder CNN, no norm", without_norm, changed(UNIT, own_range, since=31), named).faults(
        "nonfinite,constant_images", blank_image=sixty("0/0, step 30")
    ),
    Task("encoder CNN", with_norm, P, log_of_zero).cases(log_of_zero=sixty("log(0) in the loss")),
    Task("encoder CNN", with_norm, P, root_of_zero).cases(
        root_of_zero=sixty("sqrt at 0, backward only")
    ),
    Task("CNN, float16 layer", HalfPrecision, RAW, named).cases(
        half_overflow=sixty("float16 overflow", SLOW)
    ),
    expected="nonfinite",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("CNN, standardized by hand", ByHand, last_batch(P), named).cases(
        batch_of_one=sixty("std of one example")
    ),
    Task("CNN with attention", Attending, changed(P, one_empty, since=26), named).cases(
        all_padding=sixty("softmax of -inf only")
    ),
    expected="nonfinite",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("encoder CNN", with_norm, P, ignored).cases(
        ignored=sixty("a batch with no sure class", batch=2)
    ),
    expected="nonfinite",
)
