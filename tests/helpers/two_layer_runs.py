"""Runs of a convolution and a ReLU with known numbers, and records of arbitrary bytes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tab_client import Tab, open_tab
from torch import nn

import fmapboard
from fmapboard.records import LoggedStep, TabRecord, TaggedPictures
from fmapboard.writers.tensorboard import TensorBoardWriter

STEPS = [0, 10, 20]
# Of the five output channels one is NaN, one constant, and one always below zero.
WEIGHTS, BIASES = [1.0, 2.0, 0.0, float("nan"), -1.0], [0.0, 0.0, 5.0, 0.0, -1.0]


def two_layers() -> nn.Sequential:
    """A 1x1 convolution with known numbers, and a ReLU after it."""
    model = nn.Sequential(nn.Conv2d(1, 5, 1), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor(WEIGHTS)[:, None, None, None])
        model[0].bias.copy_(torch.tensor(BIASES))
    return model


def log_steps(
    run: Path, names: Sequence[str | None] = (None,), steps: Sequence[int] = STEPS,
    lr: float = 0.0, **options: Any,
) -> None:  # fmt: skip
    """Log steps of a `two_layers` for each name; the input of step s is 0, 1, 2, 3 plus s / 10."""
    with contextlib.ExitStack() as stack:
        models = [two_layers() for _ in names]
        boards = [
            stack.enter_context(
                fmapboard.watch(
                    model, run, every=1, layers=[nn.Conv2d, nn.ReLU], samples=2, inputs=True,
                    activation_gradients=True, name=name, **options,
                )
            )
            for model, name in zip(models, names, strict=True)
        ]  # fmt: skip
        for step in steps:
            for model, board in zip(models, boards, strict=True):
                _log_step(model, board, step, lr)
            for board in boards:
                board.flush()


def _log_step(model: nn.Module, board: fmapboard.FeatureMapLogger, step: int, lr: float) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    with board.step(step):
        x = torch.arange(4.0).reshape(1, 1, 2, 2).repeat(3, 1, 1, 1) + step / 10
        model(x).nansum().backward()
        optimizer.step()
    optimizer.zero_grad()


def store_blobs(
    run: Path, blobs: Sequence[bytes], *, tag: str = "fmapboard/a", step: int = 0,
    pictures: tuple[TaggedPictures, ...] = (),
) -> None:  # fmt: skip
    """Add a record of these blobs to a run, valid or not; its other records stay."""
    writer = TensorBoardWriter(run, start_step=10**6)
    records = (TabRecord(tag, tuple(blobs)),)
    writer.write(LoggedStep(step, time.time(), pictures=pictures, records=records))
    writer.close()


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one model, and two models of one process."""
    root = tmp_path_factory.mktemp("logdir")
    log_steps(root / "run2")
    log_steps(root / "run10", names=["gan", "critic"])
    return root


@pytest.fixture(scope="session")
def tab(logdir: Path) -> Tab:
    return open_tab(logdir)
