"""Update ratios of heads with very many classes are within 15 %, or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from exact_updates import Exact, update_ratios
from torch import nn
from torch.nn import functional as F

import fmapboard
from fmapboard.gradients.update_ratios import standard_error
from fmapboard.writers.folder import MemoryWriter

Optimizers = Callable[[Any], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Optimizers] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.5),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-3),
}
STEPS = 8


def errors(features: int, classes: int, batch: int, optimizers: Optimizers) -> list[float]:
    """Relative errors of the ratios of the head that are logged."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 8, 4), nn.Flatten(), nn.Linear(8, features), nn.ReLU())
    model, kept = nn.Sequential(body, nn.Linear(features, classes)), MemoryWriter()
    exact, optimizer = Exact(model), optimizers(model.parameters())
    with fmapboard.watch(model, writer=kept, every=1, optimizer=optimizer):
        for _ in range(STEPS):
            optimizer.zero_grad()
            labels = torch.randint(classes, (batch,))
            F.cross_entropy(model(torch.randn(batch, 3, 4, 4)), labels).backward()
            with exact.update():
                optimizer.step()
    pairs = zip(map(update_ratios, kept.steps), exact.ratios, strict=True)
    return [
        found["1.weight"] / ratios["1.weight"] - 1 for found, ratios in pairs if "1.weight" in found
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("features", "classes", "batch"), [(64, 20_000, 8), (64, 10_572, 64)])
def test_the_ratio_of_a_large_head_is_within_15_percent_or_left_out(
    features: int, classes: int, batch: int, name: str
) -> None:
    found = errors(features, classes, batch, OPTIMIZERS[name])
    assert max(map(abs, found), default=0.0) <= 0.15
    if name == "Adam":
        assert len(found) == STEPS


def test_a_head_with_fewer_classes_than_rows_are_read_always_has_a_ratio() -> None:
    found = errors(256, 1000, 4, OPTIMIZERS["SGD"])
    assert len(found) == STEPS
    assert max(map(abs, found)) <= 0.15


def test_the_standard_error_is_half_that_of_the_squares() -> None:
    squares = np.tile([0.5, 1.5], 50)  # 0.5 off the mean of 1
    assert standard_error(squares) == pytest.approx(0.5 / 10 / 2)
