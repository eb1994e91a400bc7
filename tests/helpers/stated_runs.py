"""A run in each state that a verdict can have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import fmapboard

CLASSES = 4
BATCH = 32


def _cross_entropy_and_more(output: Tensor, labels: Tensor) -> Tensor:
    """A loss that cannot be read from its gradient."""
    return nn.functional.cross_entropy(output, labels) + 0.3 * (output.abs() ** 1.5).mean()


def _right(labels: Tensor) -> Tensor:
    return labels


def _random(labels: Tensor) -> Tensor:
    return torch.randint(0, CLASSES, labels.shape)


def log_bars(
    run: Path,
    *,
    steps: int = 100,
    learning_rate: float = 0.05,
    labels_of: Callable[[Tensor], Tensor] = _right,
    loss_of: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
) -> None:
    """Train to tell where a bright bar is in noise."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    with fmapboard.watch(model, run, every=5, optimizer=optimizer) as board:
        for step in range(steps):
            labels = torch.randint(0, CLASSES, (BATCH,))
            images = torch.randn(BATCH, 3, 24, 24) * 0.3
            for image, label in zip(images, labels.tolist(), strict=True):
                image[:, :, 6 * label : 6 * label + 6] += 1
            given = labels_of(labels)
            with board.step(step):
                optimizer.zero_grad()
                loss_of(model(images), given).backward()
                optimizer.step()


@pytest.fixture(scope="session")
def stated_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``fault``, ``suspicion``, ``does not learn``, ``not known`` and ``learns``: their states."""
    root = tmp_path_factory.mktemp("stated")
    log_bars(root / "fault", steps=20, learning_rate=500)
    log_bars(root / "suspicion", steps=60, learning_rate=1e-8)
    log_bars(root / "does not learn", learning_rate=0.01, labels_of=_random)
    log_bars(root / "not known", steps=20, loss_of=_cross_entropy_and_more)
    log_bars(root / "learns")
    return root
