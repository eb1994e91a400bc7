"""A network that is large enough to be read on another thread, and trainings of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from exact_updates import Exact, largest_error, update_ratios
from torch import nn

import fmapboard
from fmapboard.writers.memory import MemoryWriter

Change = Callable[[nn.Module], None]
RIGHT = 0.15
"""Largest error of a sample of these updates; at the wrong time it would be half or more."""


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 1024, 3), nn.ReLU(), nn.Conv2d(1024, 64, 3)
    )  # 1.2 million values


def train(
    model: nn.Module, optimizers: list[torch.optim.Optimizer], change: Change, steps: int = 3
) -> float:
    """Change the model between backward pass and update; the largest error of the ratios."""
    kept, exact = MemoryWriter(), Exact(model)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(steps):
            with board.step(number):
                for optimizer in optimizers:
                    optimizer.zero_grad()
                model(torch.randn(2, 3, 7, 7)).square().mean().backward()
                change(model)
                with exact.update():
                    for optimizer in optimizers:
                        optimizer.step()
    assert len(kept.steps) == steps
    found = [update_ratios(step) for step in kept.steps]
    return max(largest_error(own, true) for own, true in zip(found, exact.ratios, strict=True))


def nothing(model: nn.Module) -> None:
    return
