"""A training step of a small network, and what `fmapboard.watch` logged in it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.records import LoggedStep


def batch(size: int = 4) -> tuple[Tensor, Tensor]:
    """Random images [N, 3, 12, 12] and labels of four classes [N]."""
    return torch.randn(size, 3, 12, 12), torch.randint(0, 4, (size,))


def sgd(model: nn.Module, lr: float = 0.1) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = batch()
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def numbers(steps: list[LoggedStep]) -> list[int]:
    """The step numbers."""
    return [step.step for step in steps]


def tags(step: LoggedStep) -> set[str]:
    """Every tag of a step: pictures, histograms, scalars and records of the tab."""
    series = [*step.pictures, *step.histograms, *step.records]
    return {item.tag for item in series} | set(step.scalars)
