"""Networks and batches for the checks on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.convnext import CNBlockConfig, ConvNeXt


class SmallNet(nn.Module):
    """In-place ReLUs, BatchNorm, pooling, dropout, a residual, and a convolution called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 5, stride=2, padding=2)
        self.norm = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.twice = nn.Conv2d(16, 16, 3, padding=1)
        self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=4, bias=False)
        self.wide = nn.Conv2d(16, 80, 1)
        self.last = nn.ReLU()
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(80, 10)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.pool(self.relu(self.norm(self.stem(x))))
        maps = maps + self.twice(self.twice(maps).sigmoid())
        maps = self.last(self.wide(self.grouped(maps)))
        logits: Tensor = self.head(self.dropout(maps.mean((2, 3))))
        return logits


def cifar_resnet18() -> nn.Module:
    """ResNet-18 as usually adapted to 32² images."""
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


class UNet3d(nn.Module):
    """A U-Net for volumes, two convolutions per level, with two classes."""

    def __init__(self, width: int = 16, levels: int = 4) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(map(_block, [1, *widths], widths))
        self.pool = nn.MaxPool3d(2)
        pairs = list(zip(widths[1:], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose3d(a, b, 2, stride=2) for a, b in pairs)
        self.merge = nn.ModuleList(_block(2 * b, b) for _, b in pairs)
        self.head = nn.Conv3d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        passed = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            passed.append(x)
        passed.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge), strict=True):
            x = merge(torch.cat([up(x), passed.pop()], 1))
        logits: Tensor = self.head(x)
        return logits


def _block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv3d(before, after, 3, padding=1), nn.BatchNorm3d(after), nn.ReLU(inplace=True)),
        *(nn.Conv3d(after, after, 3, padding=1), nn.BatchNorm3d(after), nn.ReLU(inplace=True)),
    )


@dataclass(frozen=True)
class Work:
    """A network and its batch.

    Attributes:
        name: Name in the tables.
        make: Creates the network.
        shape: Shape of the batch.
        modes: Training modes whose cost is measured unless others are chosen.
        dense: The labels have the spatial shape of the batch.
    """

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    modes: tuple[str, ...] = ("eager",)
    dense: bool = False

    def labels(self) -> Tensor:
        """Classes 0 and 1."""
        shape = (self.shape[0], *self.shape[2:]) if self.dense else self.shape[:1]
        return torch.arange(torch.Size(shape).numel()).reshape(shape) % 2


def small(*, tiny: bool) -> Work:
    """The network of the checks that measure no cost."""
    return Work("small", SmallNet, (2, 3, 32, 32) if tiny else (8, 3, 128, 128))


def works(*, tiny: bool, only: str = "") -> list[Work]:
    """The workloads whose costs are measured and whose names contain ``only``."""
    found = [
        Work(
            "ResNet-50 224² ×64",
            torchvision.models.resnet50,
            (64, 3, 224, 224),
            ("eager", "amp", "channels_last"),
        ),
        Work(
            "ResNet-18 32² ×512",
            cifar_resnet18,
            (512, 3, 32, 32),
            ("eager", "compile", "reduce_overhead"),
        ),
        Work("ConvNeXt-T 224² ×64", torchvision.models.convnext_tiny, (64, 3, 224, 224)),
        Work("3D U-Net 128³ ×2", UNet3d, (2, 1, 128, 128, 128), dense=True),
    ]
    if tiny:
        blocks = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)]
        found = [
            small(tiny=True),
            Work("ConvNeXt", lambda: ConvNeXt(blocks), (2, 3, 32, 32)),
            Work("3D U-Net", lambda: UNet3d(4, 2), (1, 1, 8, 8, 8), dense=True),
        ]
    return [work for work in found if only in work.name]
