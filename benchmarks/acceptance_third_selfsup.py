"""Self- and semi-supervised trainings of the third set."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from acceptance_case import follow
from acceptance_classic import head, unit
from acceptance_data import photos
from acceptance_later_loops import views
from acceptance_third_loop import Measured, evaluated
from torch import Tensor, nn, optim
from torch.nn import functional

import fmapboard


def trunk(width: int = 32) -> nn.Module:
    """A small residual backbone that ends in a vector of 2 × width."""

    class Block(nn.Module):
        def __init__(self, into: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.conv2 = unit(into, out, stride=stride), unit(out, out)
            self.skip = nn.Conv2d(into, out, 1, stride)

        def forward(self, x: Tensor) -> Tensor:
            return self.skip(x) + self.conv2(self.conv1(x))

    layers = [unit(3, width, stride=2), Block(width, width, 1), Block(width, 2 * width, 2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def projector(into: int, out: int, hidden: int = 128) -> nn.Module:
    """SimSiam's: BatchNorm after each layer, without scale and shift after the last."""
    layers = [nn.Linear(into, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU()]
    layers += [nn.Linear(hidden, out, bias=False), nn.BatchNorm1d(out, affine=False)]
    return nn.Sequential(*layers)


class Siamese(nn.Module):
    """Backbone, projector and predictor; called with two views."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.projector = trunk(), projector(64, 64)
        self.predictor = nn.Sequential(
            nn.Linear(64, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 64)
        )

    def forward(self, one: Tensor, two: Tensor) -> Tensor:
        codes = [self.projector(self.backbone(x)) for x in (one, two)]
        told = [self.predictor(z) for z in codes]
        alike = functional.cosine_similarity
        first, second = alike(told[0], codes[1].detach()), alike(told[1], codes[0].detach())
        return 1 - (first + second).mean() / 2


def simsiam(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    return model(*views(images))


class Expanded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.expander = trunk(), projector(64, 96)


def vicreg(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Invariance, variance and covariance; the forward pass is not the root's."""
    codes = [model.expander(model.backbone(x)) for x in views(images)]
    loss = 25 * functional.mse_loss(*codes)
    for code in codes:
        code = code - code.mean(0)
        loss = loss + 25 * functional.relu(1 - (code.var(0) + 1e-4).sqrt()).mean()
        cross = code.T @ code / (len(code) - 1)
        loss = loss + (cross.square().sum() - cross.diagonal().square().sum()) / code.shape[1]
    return loss


class Swapped(nn.Module):
    """SwAV: codes and prototypes, which are normalized before each step."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = trunk(), nn.Linear(64, 32)
        self.prototypes = nn.Linear(32, 24, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.prototypes(functional.normalize(self.head(self.backbone(x)), dim=1))


def normalize_prototypes(_: int, model: nn.Module, __: optim.Optimizer) -> None:
    with torch.no_grad():
        weight = model.prototypes.weight
        weight.copy_(functional.normalize(weight, dim=1))


def swav(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    scores = [model(view) for view in views(images)]
    goals = []
    for score in scores:
        share = (score.detach() / 0.05).exp().T
        for _ in range(3):
            share = share / share.sum(1, keepdim=True) / len(share)
            share = share / share.sum(0, keepdim=True) / share.shape[1]
        goals.append((share * share.shape[1]).T)
    first = functional.cross_entropy(scores[0] / 0.1, goals[1])
    return (first + functional.cross_entropy(scores[1] / 0.1, goals[0])) / 2


def supervised_contrast(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    code = functional.normalize(model(torch.cat(views(images))), dim=1)
    labels = labels.repeat(2)
    eye = torch.eye(len(code), dtype=torch.bool)
    score = (code @ code.T / 0.1).masked_fill(eye, -1e4).log_softmax(1)
    same = (labels[:, None] == labels).float().masked_fill(eye, 0.0)
    return -((same * score).sum(1) / same.sum(1)).mean()


class MaskedConvolutions(nn.Module):
    """SimMIM with a convolutional encoder: hidden patches become a learned token."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 3, 1, 1))
        layers = [unit(3, 32, 4, 2), unit(32, 48, stride=2), unit(48, 64, 5), unit(64, 64, 5)]
        self.encoder, self.decoder = nn.Sequential(*layers), nn.Conv2d(64, 3 * 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = (torch.rand(len(x), 1, 8, 8) < 0.5).float()
        hidden = hidden.repeat_interleave(4, 2).repeat_interleave(4, 3)
        mixed = functional.pad(x * (1 - hidden) + self.token * hidden, (0, 1, 0, 1))
        again = functional.pixel_shuffle(self.decoder(self.encoder(mixed)), 4)
        return ((again - x).abs() * hidden).sum() / hidden.sum() / 3


def own_loss(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    return model(images)


def mean_teacher(place: Path, seed: int) -> Measured:
    """Semi-supervised: few labels, consistency with an average of the weights; both watched."""
    random, draw = torch.Generator().manual_seed(seed), photos(32)
    student = nn.Sequential(trunk(), nn.Dropout(0.2), nn.Linear(64, 8))
    teacher = copy.deepcopy(student)
    for parameter in teacher.parameters():
        parameter.detach_()
    optimizer = optim.SGD(student.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    losses, held_out = Measured(), draw(random, 32)
    with (
        fmapboard.watch(student, place, optimizer=optimizer, every=8, name="student"),
        fmapboard.watch(teacher, place, optimizer=optimizer, every=16, name="teacher"),
    ):
        for step in range(80):
            images, labels = draw(random, 16)
            named = functional.cross_entropy(student(images[:8]), labels[:8])
            one, two = views(images)
            with torch.no_grad():
                goal = teacher(two).softmax(1)
            same = functional.mse_loss(student(one).softmax(1), goal)
            optimizer.zero_grad()
            (named + min(1, step / 40) * 3 * same).backward()
            optimizer.step()
            follow(teacher, student, min(1 - 1 / (step + 1), 0.97))
            losses.append(named.item())
    told = lambda: functional.cross_entropy(student(held_out[0]), held_out[1])  # noqa: E731
    losses.evaluated = evaluated(student, told)
    return losses


def fix_match(place: Path, seed: int) -> Measured:
    """Pseudo-labels above a confidence; at first there are none, and their loss is 0."""
    random, draw = torch.Generator().manual_seed(seed), photos(32)
    model = nn.Sequential(trunk(24), nn.Linear(48, 8))
    optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
    held_out, losses = draw(random, 32), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=8, samples=2):
        for _ in range(80):
            images, labels = draw(random, 24)
            weak = images[8:].flip(3)
            strong = (images[8:] * 0.7 + 0.3 * torch.randn_like(weak)).roll(4, 2)
            known, easy, hard = model(torch.cat([images[:8], weak, strong])).split([8, 16, 16])
            named = functional.cross_entropy(known, labels[:8])
            sure, guess = easy.detach().softmax(1).max(1)
            told = functional.cross_entropy(hard, guess, reduction="none") * (sure > 0.9)
            optimizer.zero_grad()
            (named + told.mean()).backward()
            optimizer.step()
            losses.append(named.item())
    last = lambda: functional.cross_entropy(model(held_out[0]), held_out[1])  # noqa: E731
    losses.evaluated = evaluated(model, last)
    return losses


def feature_targets(place: Path, seed: int) -> Measured:
    """data2vec: the maps of a slow copy, held by the model, are told from a masked picture."""

    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student = nn.Sequential(
                unit(3, 32, stride=2), unit(32, 48, stride=2), unit(48, 48)
            )
            self.head = nn.Conv2d(48, 48, 1)
            self.teacher = copy.deepcopy(self.student).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                goal = functional.instance_norm(self.teacher(x))
            hidden = torch.rand(len(x), 1, 8, 8) < 0.4
            wide = hidden.repeat_interleave(4, 2).repeat_interleave(4, 3)
            told = self.head(self.student(x.masked_fill(wide, 0.0)))
            return functional.smooth_l1_loss(told, goal)

    random, model = torch.Generator().manual_seed(seed), Told()
    chosen = [*model.student.parameters(), *model.head.parameters()]
    optimizer, losses = optim.AdamW(chosen, lr=2e-3, betas=(0.9, 0.98)), Measured()
    held_out = photos(32)(random, 16)[0]
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(80):
            loss = model(photos(32)(random, 16)[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            follow(model.teacher, model.student, 0.99)
            losses.append(loss.item())
    losses.evaluated = evaluated(model, lambda: model(held_out))
    return losses


def classifier(width: int = 24, classes: int = 8) -> nn.Module:
    return nn.Sequential(trunk(width), nn.Linear(2 * width, classes))


def small_classifier(classes: int = 8) -> nn.Module:
    return nn.Sequential(unit(3, 24), nn.MaxPool2d(2), unit(24, 48), *head(48, classes))
