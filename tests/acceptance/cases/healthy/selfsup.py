"""Healthy: training without labels, or with few."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import torch
from data import P
from loops import Losses, Task, descend, eighty, evaluated, follow, own_loop, seen, train
from losses import both_views, own
from nets import classifiers as cnn
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

import fmapboard


def behind(decay: float, fast: str, slow: str) -> object:
    """A hook by which one part of a model follows another slowly."""
    return lambda _, model, __: follow(getattr(model, slow), getattr(model, fast), decay)


class Momentum(nn.Module):
    """MoCo: the query's encoder, the key's slow copy, and a queue of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query = cnn.encoder()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", functional.normalize(torch.randn(64, 32), dim=1))

    def forward(self, one: Tensor, two: Tensor) -> Tensor:
        query = functional.normalize(self.query(one), dim=1)
        with torch.no_grad():
            follow(self.key, self.query, 0.95)
            key = functional.normalize(self.key(two), dim=1)
        logits = torch.cat([(query * key).sum(1, keepdim=True), query @ self.queue.T], 1) / 0.2
        if self.training:
            self.queue = torch.cat([key, self.queue])[:64]
        return functional.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long))


def of_two_views(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Of a model that returns its loss for two views."""
    return model(*both_views(images))


class Distilled(nn.Module):
    """DINO: student and teacher in one watched module, only the student in the optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.student = cnn.encoder(48)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(48))

    def forward(self, images: Tensor, *_: Tensor) -> Tensor:
        large = both_views(images)
        small = functional.interpolate(large[0], (16, 16), mode="bilinear")
        with torch.no_grad():
            seen = [self.teacher(view) for view in large]
            goals = [((y - self.centre) / 0.05).softmax(1) for y in seen]
            self.centre = 0.9 * self.centre + 0.1 * torch.cat(seen).mean(0)
        given = [self.student(view) for view in (*large, small)]
        pairs = [(g, s) for i, g in enumerate(goals) for j, s in enumerate(given) if i != j]
        return torch.stack([-(g * (s / 0.1).log_softmax(1)).sum(1).mean() for g, s in pairs]).mean()


def last_frozen(model: Distilled) -> optim.Optimizer:
    """The gradient of the last layer is dropped in the first five steps."""
    last, count = model.student[-1], 0

    def drop(*_: object) -> None:
        nonlocal count
        count += 1
        if count <= 5:
            last.weight.grad = last.bias.grad = None

    optimizer = optim.AdamW(model.student.parameters(), lr=1e-3, weight_decay=0.04)
    optimizer.register_step_pre_hook(drop)
    return optimizer


def mean_teacher(place: Path, seed: int) -> Losses:
    """Semi-supervised: few labels, consistency with an average of the weights; both watched."""
    student = nn.Sequential(cnn.trunk(), nn.Dropout(0.2), nn.Linear(64, 8))
    teacher = copy.deepcopy(student)
    for parameter in teacher.parameters():
        parameter.detach_()
    optimizer = optim.SGD(student.parameters(), lr=0.03, momentum=0.9, nesterov=True)

    def step(number: int, random: Generator) -> float:
        images, labels = P(random, 16)
        named = functional.cross_entropy(student(images[:8]), labels[:8])
        one, two = both_views(images)
        with torch.no_grad():
            goal = teacher(two).softmax(1)
        same = functional.mse_loss(student(one).softmax(1), goal)
        descend(optimizer, named + min(1, number / 40) * 3 * same)
        follow(teacher, student, min(1 - 1 / (number + 1), 0.97))
        return named.item()

    second = {"optimizer": optimizer, "every": 16, "name": "teacher"}
    with fmapboard.watch(teacher, place, **second):
        losses = train(place, seed, student, step, 80, 8, optimizer, name="student")
    images, labels = P(Generator().manual_seed(seed + 1000), 32)
    told = partial(functional.cross_entropy, target=labels)
    losses.evaluated = evaluated(student, lambda: told(student(images)))
    return losses


def fix_match(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Pseudo-labels above a confidence; at first there are none, and their loss is 0."""
    weak = images[8:].flip(3)
    strong = (images[8:] * 0.7 + 0.3 * torch.randn_like(weak)).roll(4, 2)
    known, easy, hard = model(torch.cat([images[:8], weak, strong])).split([8, 16, 16])
    sure, guess = easy.detach().softmax(1).max(1)
    told = functional.cross_entropy(hard, guess, reduction="none") * (sure > 0.9)
    return functional.cross_entropy(known, labels[:8]) + told.mean()


CASES = seen(
    "2026-11-23T07:48",
    Task("MoCo", Momentum, P, of_two_views).cases(
        moco=eighty(
            "slow copy and queue inside",
            lambda m: optim.SGD(m.parameters(), lr=0.06, momentum=0.9, weight_decay=1e-4),
            steps=120,
        )
    ),
    Task("DINO", Distilled, P, own).cases(
        dino=eighty(
            "teacher inside, last layer frozen at first",
            last_frozen,
            steps=120,
            after=behind(0.97, "student", "teacher"),
        )
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    own_loop("mean_teacher", "student and teacher, both watched", "SGD", mean_teacher, 80, 8),
    Task("residual CNN", partial(cnn.classifier, 24), P, fix_match).cases(
        fix_match=eighty(
            "SGD",
            by(optim.SGD, lr=0.03, momentum=0.9, weight_decay=5e-4),
            batch=24,
            watch={"samples": 2},
        )
    ),
)
