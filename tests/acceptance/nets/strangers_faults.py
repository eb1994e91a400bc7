"""Networks and helpers of the trainings whose faults were written without knowing the checks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from data import Draw, P
from loops import Case, Loss, Recipe, Task
from losses import named
from nets.classifiers import Function, encoder
from optimizers import ADAM, Optimizer
from torch import Generator, Tensor, nn
from torch.nn import functional


def wrong(
    name: str,
    kinds: str,
    words: str,
    architecture: str,
    make: Callable[[], nn.Module],
    draw: Draw = P,
    loss: Loss = named,
    optimizer: Callable[[nn.Module], Optimizer] = ADAM,
    **options: object,
) -> list[Case]:
    """96 steps with the fault that ``words`` tell, whose cause each of ``kinds`` names."""
    recipe = Recipe(words, optimizer, **({"steps": 96, "every": 8, "zero": "before"} | options))
    return Task(architecture, make, draw, loss).faults(kinds, **{name: recipe})


def then(net: nn.Module, function: Callable[[Tensor], Tensor]) -> nn.Module:
    return nn.Sequential(net, Function(function))


def relabelled(draw: Draw, change: Callable[[Tensor], Tensor]) -> Draw:
    """``change`` is applied to the labels or masks."""

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels, *rest = draw(generator, count)
        return images, change(labels), *rest

    return again


def in_order(draw: Draw, examples: int) -> Draw:
    """A data set sorted by class, read from the first to the last example, again and again."""
    kept: list[tuple[Tensor, ...]] = []
    begin = 0

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal begin
        if not kept:
            images, labels, *_ = draw(generator, examples)
            order = labels.argsort(stable=True)
            kept.append((images[order], labels[order]))
        begin = begin if begin + count <= examples else 0
        begin += count
        return tuple(part[begin - count : begin] for part in kept[0])

    return again


class Alike(nn.Module):
    """Similarity to each class's text vector, as of CLIP; the scale is ``temperature``."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.back, self.words, self.scale = encoder(32), nn.Parameter(torch.randn(8, 32)), scale

    def forward(self, x: Tensor) -> Tensor:
        code, words = (functional.normalize(v, dim=1) for v in (self.back(x), self.words))
        return self.scale * code @ words.T


class OldHead(nn.Module):
    """The published ``fc`` is still there; ``head`` is what gives the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.fc, self.head = encoder(48), nn.Linear(48, 100), nn.Linear(48, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.back(x).relu())


class Fused(nn.Module):
    """Two views at two scales; ``forward`` has the first branch twice, by copy and paste."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far, self.last = encoder(32), encoder(32), nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        wide = functional.avg_pool2d(x, 2)
        return self.last(torch.cat([self.near(x), self.near(wide)], 1).relu())


class Doubling(nn.Module):
    """A residual block without norm, whose branch is as large as its input, or larger."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        for conv in (self.conv1, self.conv2):
            nn.init.normal_(conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(self.conv1(x).relu())
