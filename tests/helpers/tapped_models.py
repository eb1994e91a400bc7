"""A model that taps a tensor, and what one logged training step of such a model holds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


class Residual(nn.Module):
    """Taps the sum before an in-place ReLU changes it."""

    def __init__(self, name: str = "sum") -> None:
        super().__init__()
        self.conv, self.name = nn.Conv2d(3, 3, 3, padding=1), name

    def forward(self, x: Tensor) -> Tensor:
        added = fmapboard.tap(self.name, self.conv(x) + x)
        return torch.relu_(added).mean((2, 3))


def images() -> Tensor:
    return torch.randn(2, 3, 8, 8)


def logged(model: nn.Module, x: Tensor, **options: Any) -> LoggedStep:
    """One logged training step."""
    kept = MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, **options):
        model(x).square().sum().backward()
        optimizer.step()
    (step,) = kept.steps
    return step


def names(step: LoggedStep) -> list[str]:
    maps = [measured for measured in step.statistics if measured.kind == "feature_maps"]
    return [measured.layer_call.label for measured in maps]
