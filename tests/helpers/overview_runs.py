"""Runs for the overview page: a healthy one, one that goes wrong, and one of an earlier version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from striped_training import STEPS, train
from torch import nn

import fmapboard

HEALTHY_STEPS = list(range(0, 24, 3))
NAN_FROM = 30
OLD = "run_cde8805"


def log_healthy(run: Path) -> None:
    """Train a convolution, a leaky activation and a second convolution: no channel is ever dead."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.LeakyReLU(), nn.Conv2d(6, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(2, 3, 20, 20)
    with fmapboard.watch(model, run, every=1, optimizer=optimizer, start_step=0) as board:
        for step in HEALTHY_STEPS:
            with board.step(step):
                optimizer.zero_grad()
                model(images).square().mean().backward()
                optimizer.step()


@pytest.fixture(scope="session")
def overview_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``healthy``; ``ill``, with NaN from step 30 on and a dead channel of 16; and the old run."""
    root = tmp_path_factory.mktemp("overview")
    log_healthy(root / "healthy")
    train(root / "ill", STEPS, poison=NAN_FROM)
    shutil.copytree(Path(__file__).parents[1] / "golden" / OLD, root / OLD)
    return root
