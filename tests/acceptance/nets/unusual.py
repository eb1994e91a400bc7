"""Classifiers with unusual layers, norms, activations, blocks or initializations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets.classifiers import head, unit
from torch import Tensor, nn
from torch.nn.utils import parametrize


class Blur(nn.Module):
    """Anti-aliased subsampling: one fixed binomial kernel, in each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, 2, 1, groups=width, bias=False)
        line = torch.tensor([0.25, 0.5, 0.25])
        self.conv.weight.data.copy_(torch.outer(line, line))
        self.conv.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class Experts(nn.Module):
    """Four convolutions; a router picks one for each image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 4)
        self.experts = nn.ModuleList(unit(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        gates = (self.router(x.mean((2, 3))) + 0.3 * torch.randn(len(x), 4)).softmax(1)
        best, y = gates.argmax(1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (best == number).nonzero()[:, 0]
            if len(rows):
                y = y.index_add(0, rows, expert(x[rows]) * gates[rows, number, None, None, None])
        return x + y


def mixture() -> nn.Module:
    layers = [unit(3, 32), nn.MaxPool2d(2), Experts(32), nn.MaxPool2d(2), Experts(32)]
    return nn.Sequential(*layers, *head(32, 8))


class Binary(nn.Module):
    """Weights of ±1 with a straight-through gradient."""

    def forward(self, weight: Tensor) -> Tensor:
        scale = weight.abs().mean((1, 2, 3), keepdim=True)
        return weight + (weight.sign() * scale - weight).detach()


def binary() -> nn.Module:
    layers: list[nn.Module] = [unit(3, 24)]
    for into, out in ((24, 32), (32, 48)):
        conv = nn.Conv2d(into, out, 3, padding=1, bias=False)
        parametrize.register_parametrization(conv, "weight", Binary())
        layers += [nn.MaxPool2d(2), conv, nn.BatchNorm2d(out), nn.Hardtanh()]
    return nn.Sequential(*layers, *head(48, 8))


class TextNet(nn.Module):
    """Kim's convolutions over word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 24, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(24, 16, size, padding=2) for size in (2, 3, 4))
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(48, 4))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens).transpose(1, 2)
        return self.last(torch.cat([conv(x).relu().amax(2) for conv in self.convs], 1))


def point_net() -> nn.Module:
    """Convolutions of size 1 over points, then the maximum."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 96)):
        layers += [nn.Conv1d(into, out, 1), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(96, 4))


def convs(
    norm: Callable[[int], nn.Module] | None,
    act: Callable[[], nn.Module],
    grow: int = 1,
) -> nn.Module:
    """Three strided convolutions; ``grow`` is how many channels an activation makes of one."""
    layers: list[nn.Module] = []
    into = 3
    for out in (24, 48, 64):
        layers += [unit(into, out, stride=2, norm=norm, act=act)]
        into = out * grow
    return nn.Sequential(*layers, *head(into, 8))


Block = Callable[[int], nn.Module]
