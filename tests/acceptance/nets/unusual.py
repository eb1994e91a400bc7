"""Classifiers with unusual layers, norms, activations, blocks or initializations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets.classifiers import head, unit
from torch import Tensor, nn


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
