"""Small networks that several test modules train or observe."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class NestedNet(nn.Module):
    """Convolutions at two nesting depths, an in-place ReLU, BatchNorm and a linear head.

    Images [N, 3, H, W] -> logits [N, 4].
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, padding=2)
        self.relu = nn.ReLU(inplace=True)
        self.inner = nn.Sequential(nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16)))
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.inner(self.relu(self.stem(x)))
        return self.head(functional.relu(maps).mean((2, 3)))


class NetWithUnusedLayer(nn.Module):
    """A convolution, an in-place ReLU, a linear head, and a layer that is never called.

    Images [N, ``channels``, H, W] -> [N, 2].
    """

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.conv(x)).mean((2, 3)))


class Cast(nn.Module):
    """Converts its input to another dtype."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)


class Raises(nn.Module):
    """Raises ``error`` in its forward pass."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        raise self.error


def two_convolutions() -> nn.Sequential:
    """Grey images [N, 1, H, W] -> maps [N, 2, H - 4, W - 4], with an in-place ReLU between."""
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Conv2d(2, 2, 3))
