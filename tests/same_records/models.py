"""Small seeded networks; the command line builds them as ``models:<function>``."""

from __future__ import annotations

from typing import Any

import torch
import torchvision
from torch import Tensor, nn


def convolutions() -> nn.Sequential:
    """Two convolutions: images [N, 3, H, W] -> logits [N, 4]."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(inplace=True), nn.Conv2d(6, 5, 3), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4),
    )  # fmt: skip


class Repeated(nn.Module):
    """One convolution called twice, and one module that is registered under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 5, 3)
        self.twice = nn.Conv2d(5, 5, 3, padding=1)
        self.relu = nn.ReLU()
        self.first = nn.Conv2d(5, 5, 1)
        self.second = self.first
        self.head = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.twice(self.stem(x)))
        x = self.relu(self.twice(x))
        x = self.second(self.first(x))
        logits: Tensor = self.head(x.mean((2, 3)))
        return logits


class Flattened(nn.Module):
    """Averages a body's output over all but batch and channels: [N, C, ...] -> [N, 4]."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).flatten(2).mean(2)[:, :4]


class Cast(nn.Module):
    """Converts its input to another dtype."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)


class Sequences(nn.Module):
    """A Conv2d and then Conv1d over its flattened maps: [N, 3, H, W] -> [N, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, stride=4)
        self.relu = nn.ReLU()
        self.rows = nn.Conv1d(8, 6, 3)
        self.more = nn.Conv1d(6, 4, 3, dilation=2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.stem(x)).flatten(2)  # [N, 8, L]
        return self.more(self.rows(x).relu()).mean(2)


def tokens() -> nn.Module:
    """A vision transformer of one layer, for images of 32 px."""
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32,
        num_classes=4,
    )  # fmt: skip


def seeded(build: Any, **options: Any) -> nn.Module:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model: nn.Module = build(**options)
    return model


def resnet18() -> nn.Module:
    return seeded(torchvision.models.resnet18, num_classes=10)


def vit() -> nn.Module:
    return seeded(tokens)


def sequences() -> nn.Module:
    return seeded(Sequences)


def repeated() -> nn.Module:
    return seeded(Repeated)


class Mixing(nn.Module):
    """Subtracts the mean over the batch, so the images of a batch affect each other."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 5, stride=2)
        self.head = nn.Conv2d(6, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return self.head(x - x.mean(0)).mean((2, 3))


def mixing() -> nn.Module:
    return seeded(Mixing)
