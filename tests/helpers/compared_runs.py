"""Runs to compare: of one probe or of other images per step, at other steps, of other layers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fmapboard

IMAGES = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(7))


def network(gain: float = 1.0, *, wide: bool = False) -> nn.Sequential:
    """Two convolutions, each with a ReLU behind it; channel 1 of the first is dead behind it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU())
    if wide:
        model.extend([nn.Conv2d(6, 4, 3, padding=1), nn.ReLU()])
    with torch.no_grad():
        model[0].weight *= gain
        model[0].bias[1] = -100.0 * gain
    return model


def log(run: Path, steps: Sequence[int], images: Sequence[torch.Tensor], **options: Any) -> None:
    """Log a forward and backward pass per step; ``gain`` and ``wide`` belong to `network`."""
    model = network(options.pop("gain", 1.0), wide=options.pop("wide", False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, run, every=1, **options) as board:
        for step, batch in zip(steps, images, strict=True):
            with board.step(step):
                optimizer.zero_grad()
                model(batch).sum().backward()
                optimizer.step()
            with torch.no_grad():
                model[0].weight *= 1.1


@pytest.fixture(scope="session")
def compared_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``probed`` and ``batches`` have the same steps, ``late`` others, ``wide`` a layer more."""
    root = tmp_path_factory.mktemp("compared")
    same, other = [IMAGES] * 3, [IMAGES.roll(k, 0) for k in range(3)]
    log(root / "batches", [0, 10, 20], other, samples=2)
    log(root / "late", [4, 14], other[:2], samples=2, gain=2.0, kernels=10)
    log(root / "probed", [0, 10, 20], other, probe=IMAGES[:1])
    log(root / "wide", [0, 10, 20], same, samples=2, wide=True, activation_gradients=True)
    return root
