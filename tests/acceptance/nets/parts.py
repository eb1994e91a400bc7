"""Parts that networks of many subjects share: blocks, perceptrons, initial weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import timm
import torch
from nets import classifiers as cnn
from torch import Tensor, nn

half = nn.MaxPool2d(2)

leaky = partial(nn.LeakyReLU, 0.2)

up = nn.Upsample(scale_factor=2)


def changed_weights(model: nn.Module, change: Callable[[Tensor], object]) -> nn.Module:
    for parameter in model.parameters():
        change(parameter.data)
    return model


small = partial(changed_weights, change=lambda p: p.normal_(0, 0.1))

glorot = partial(
    changed_weights, change=lambda p: nn.init.xavier_uniform_(p) if p.ndim > 1 else p.zero_()
)

act = nn.ReLU()

smaller = partial(changed_weights, change=lambda p: p.normal_(0, 0.01))


def slim(name: str, classes: int = 8, **options: Any) -> Callable[[], nn.Module]:
    """timm's network with a new head."""

    def make() -> nn.Module:
        model = timm.create_model(name, **options)
        model.reset_classifier(classes)
        return model

    return make


def norm1(a: int, b: int, size: int = 1, apart: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv1d(a, b, size, dilation=apart), nn.BatchNorm1d(b), nn.ReLU())


def group(width: int) -> nn.Module:
    return nn.GroupNorm(4, width)


class Residual(nn.Module):
    def __init__(self, *body: nn.Module, skip: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.skip = nn.Sequential(*body), skip or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.skip(x) + self.body(x)


class Branches(nn.Module):
    """GoogLeNet's: 1 × 1, 3 × 3, 5 × 5 and pooling."""

    def __init__(self, into: int, width: int) -> None:
        super().__init__()
        pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), cnn.unit(into, width, 1))
        branches = [
            nn.Sequential(cnn.unit(into, width, 1), cnn.unit(width, width, s)) for s in (3, 5)
        ]
        self.branches = nn.ModuleList([cnn.unit(into, width, 1), *branches, pooled])

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in itertools.pairwise(widths):
        layers += [nn.Linear(into, out), act()]
    return nn.Sequential(*layers[:-1])


def ends(make: Callable[[], nn.Module], *layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(make(), *layers)


class Net(nn.ModuleDict):
    """Parts, and a function of them and the input."""

    def __init__(self, run: Any, **parts: nn.Module) -> None:
        super().__init__(parts)
        self.run = run

    def forward(self, *x: Tensor) -> Any:
        return self.run(self, *x)
