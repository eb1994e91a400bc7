"""Healthy: training without labels, or with few, and metric learning."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import recipes.hundred as r100
import torch
from data import P, few_classes
from loops import Losses, Task, descend, eighty, evaluated, follow, own_loop, seen, train
from losses import ArcFace, angular, both_views, own, pairs, triplets, two_views
from nets import classifiers as cnn
from optimizers import QUICK, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

import fmapboard


class Online(nn.Module):
    """BYOL: a network, a predictor of the codes of its slow copy, and the copy."""

    def __init__(self) -> None:
        super().__init__()
        self.online = cnn.resnet(classes=32)
        layers = [nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32)]
        self.predictor = nn.Sequential(*layers)
        self.target = copy.deepcopy(self.online).requires_grad_(False)


def own_targets(model: Online, images: Tensor, *_: Tensor) -> Tensor:
    """What the slow copy says of another view is predicted."""
    views = [images + 0.2 * torch.randn_like(images), images.flip(3) * 0.9]
    loss = torch.zeros(())
    for one, other in (views, views[::-1]):
        with torch.no_grad():
            goal = model.target(other)
        alike = functional.cosine_similarity(model.predictor(model.online(one)), goal)
        loss = loss + 1 - alike.mean()
    return loss


def behind(decay: float, fast: str, slow: str) -> object:
    """A hook by which one part of a model follows another slowly."""
    return lambda _, model, __: follow(getattr(model, slow), getattr(model, fast), decay)


def with_head() -> nn.Module:
    back = cnn.plain(classes=64, norm=nn.BatchNorm2d)
    return nn.Sequential(back, nn.ReLU(), nn.Linear(64, 32))


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


def projector(into: int, out: int, hidden: int = 128) -> nn.Module:
    """SimSiam's: BatchNorm after each layer, without scale and shift after the last."""
    layers = [nn.Linear(into, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU()]
    layers += [nn.Linear(hidden, out, bias=False), nn.BatchNorm1d(out, affine=False)]
    return nn.Sequential(*layers)


def expanded() -> nn.Module:
    return nn.ModuleDict({"backbone": cnn.trunk(), "expander": projector(64, 96)})


def vicreg(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Invariance, variance and covariance; the forward pass is not the root's."""
    codes = [model["expander"](model["backbone"](x)) for x in both_views(images)]
    loss = 25 * functional.mse_loss(*codes)
    for code in codes:
        code = code - code.mean(0)
        loss = loss + 25 * functional.relu(1 - (code.var(0) + 1e-4).sqrt()).mean()
        cross = code.T @ code / (len(code) - 1)
        loss = loss + (cross.square().sum() - cross.diagonal().square().sum()) / code.shape[1]
    return loss


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


NORMED = partial(cnn.plain, classes=16, norm=nn.BatchNorm2d)
CASES = seen(
    "2026-11-23T03:56",
    Task("siamese CNN", NORMED, P, pairs).cases(siamese=r100.ADAM.but("", batch=32)),
    Task("BYOL ResNet", Online, P, own_targets).cases(
        byol=eighty(
            "EMA target, AdamW",
            by(optim.AdamW, lr=1e-3, weight_decay=1e-4),
            steps=100,
            every=10,
            watched=lambda model: model.online,
            after=behind(0.98, "online", "target"),
        )
    ),
    Task("SimCLR CNN", with_head, P, two_views).cases(
        simclr_head=eighty(
            "head outside the watched model", every=10, watched=lambda model: model[0]
        )
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("ArcFace CNN", lambda: ArcFace(cnn.encoder(32)), P, angular).cases(
        arcface=r100.ADAM.but("", optimizer=QUICK)
    ),
    Task("encoder CNN", cnn.encoder, few_classes, triplets).cases(
        metric_batches=r100.ADAM.but("P × K", steps=80)
    ),
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
    Task("VICReg", expanded, P, vicreg).cases(vicreg=eighty("Adam", batch=32)),
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
