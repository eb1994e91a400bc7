"""Trainings of the third set with several networks, paths, losses or inner steps."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from acceptance_classic import head, unit
from acceptance_data import photos
from acceptance_third_loop import Measured, Plan, evaluated
from acceptance_third_selfsup import classifier, small_classifier
from acceptance_third_tuning import named, pretrained
from torch import Tensor, nn, optim
from torch.func import functional_call
from torch.nn import functional

import fmapboard


def maml(place: Path, seed: int) -> Measured:
    """MAML: two inner steps by functional_call, second order; the loss after them."""
    layers = [unit(3, 24, norm=None), nn.MaxPool2d(2), unit(24, 32, norm=None), nn.MaxPool2d(2)]
    model, random = nn.Sequential(*layers, *head(32, 2)), torch.Generator().manual_seed(seed)
    optimizer, losses = optim.Adam(model.parameters(), lr=3e-3), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=6):
        for _ in range(60):
            optimizer.zero_grad()
            total = 0.0
            for _ in range(2):
                images, labels = photos(24)(random, 20)
                binary = (labels < 4).long()
                fast = dict(model.named_parameters())
                for _ in range(2):
                    loss = functional.cross_entropy(
                        functional_call(model, fast, images[:10]), binary[:10]
                    )
                    slopes = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                    fast = {n: p - 0.1 * g for (n, p), g in zip(fast.items(), slopes, strict=True)}
                loss = functional.cross_entropy(
                    functional_call(model, fast, images[10:]), binary[10:]
                )
                (loss / 2).backward()
                total += loss.item() / 2
            optimizer.step()
            losses.append(total)
    return losses


def surgery(place: Path, seed: int) -> Measured:
    """PCGrad: gradients of two tasks by autograd.grad, projected, written to ``.grad``."""
    back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 48))
    model = nn.ModuleDict({"back": back, "kind": nn.Linear(48, 8), "tint": nn.Linear(48, 3)})
    random, losses = torch.Generator().manual_seed(seed), Measured()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    shared = list(back.parameters())

    def both(images: Tensor, labels: Tensor) -> list[Tensor]:
        code = model["back"](images).relu()
        tint = functional.mse_loss(model["tint"](code), images.mean((2, 3)))
        return [functional.cross_entropy(model["kind"](code), labels), tint]

    held_out = photos(32)(random, 32)
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(80):
            terms = both(*photos(32)(random, 16))
            flat = []
            for term in terms:
                slopes = torch.autograd.grad(term, shared, retain_graph=True)
                flat.append(torch.cat([g.flatten() for g in slopes]))
            across = (flat[0] @ flat[1]).clamp(max=0)
            mixed = (
                flat[0]
                + flat[1]
                - across * (flat[1] / flat[1].norm() ** 2 + flat[0] / flat[0].norm() ** 2)
            )
            optimizer.zero_grad()
            sum(terms).backward()
            for p, g in zip(shared, mixed.split([p.numel() for p in shared]), strict=True):
                p.grad = g.view_as(p).clone()
            optimizer.step()
            losses.append(sum(terms).item())
    losses.evaluated = evaluated(model, lambda: sum(both(*held_out)))
    return losses


class Supernet(nn.Module):
    """One-shot architecture search: each block has three branches, and a step uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(3, 24, stride=2)
        branches = [
            unit(24, 24, 3),
            unit(24, 24, 5),
            nn.Sequential(unit(24, 24, groups=24), unit(24, 24, 1)),
        ]
        self.blocks = nn.ModuleList(nn.ModuleList(copy.deepcopy(branches)) for _ in range(3))
        self.last = nn.Sequential(unit(24, 48, stride=2), *head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block[int(torch.randint(3, ()))](x)
        return self.last(x)


class Exits(nn.Module):
    """BranchyNet: a classifier after each stage; the sum of their losses is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([unit(3, 24, stride=2), unit(24, 48, stride=2), unit(48, 64)])
        self.heads = nn.ModuleList(nn.Sequential(*head(width, 8)) for width in (24, 48, 64))

    def forward(self, x: Tensor) -> list[Tensor]:
        found = []
        for stage, last in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            found.append(last(x))
        return found


def exits(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return sum(functional.cross_entropy(y, labels) for y in model(images)) / 3


def peers() -> nn.Module:
    return nn.ModuleList([small_classifier(), classifier(16)])


def mutual(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Deep mutual learning: two networks learn the labels and each other's answers."""
    one, two = (net(images) for net in model)
    loss = functional.cross_entropy(one, labels) + functional.cross_entropy(two, labels)
    soft = functional.kl_div
    loss = loss + soft(one.log_softmax(1), two.detach().softmax(1), reduction="batchmean")
    return loss + soft(two.log_softmax(1), one.detach().softmax(1), reduction="batchmean")


class Hinted(nn.Module):
    """FitNet: a frozen trained network in eval mode, and a small one that follows its maps."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = pretrained(lambda: classifier(32), size=32).requires_grad_(False)
        self.student = classifier(16)
        self.fit = nn.Conv2d(32, 64, 1)

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            goal = self.teacher[0][:3](x)
        maps = self.student[0][:3](x)
        return self.student[1](maps.mean((2, 3))), functional.mse_loss(self.fit(maps), goal)


def hinted(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    told, hint = model(images)
    return functional.cross_entropy(told, labels) + hint


COMBINED = {
    "supernet": Plan(
        Supernet,
        photos(32),
        named,
        lambda m: optim.SGD(m.parameters(), lr=0.05, momentum=0.9),
        steps=120,
        every=6,
    ).case("one-shot supernet", "a random path per step"),
    "exits": Plan(
        Exits,
        photos(32),
        exits,
        lambda m: optim.Adam(m.parameters(), lr=1e-3),
    ).case("multi-exit network", "Adam, sum of three losses"),
    "mutual": Plan(
        peers,
        photos(32),
        mutual,
        lambda m: optim.Adam(m.parameters(), lr=1e-3),
    ).case("two networks in a ModuleList", "deep mutual learning"),
    "fit_net": Plan(
        Hinted,
        photos(32),
        hinted,
        lambda m: optim.Adam([*m.student.parameters(), *m.fit.parameters()], lr=1e-3),
        steps=60,
        every=6,
    ).case("teacher and student", "FitNet hints"),
}
