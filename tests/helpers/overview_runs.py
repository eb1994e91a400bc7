"""Runs for the overview page: healthy, going wrong, of an earlier version, and a large answer."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
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


def large_answer() -> bytes:
    """An answer of ``data/health``: 3000 layers, 200 steps, one layer non-finite from step 1000."""
    count, steps = 3000, 200
    layer = {
        "name": "", "type": "Linear", "kernel_shape": None, "call": 1, "channels": 4, "values": 9,
        "drawn": 0, "activation": None, "key": None, "shown_at": None,
    }  # fmt: skip
    arrays = {name: np.zeros((steps, count), "<f4") for name in ("nonfinite", "minimum", "maximum")}
    arrays["maximum"] += 1
    arrays["nonfinite"][100:, 2000] = 1
    facts: dict[str, Any] = {
        "run": "healthy", "source": "overview", "steps": list(range(0, 10 * steps, 10)),
        "written": steps, "since": {}, "first_nonfinite": None,
        "layers": [
            {**layer, "label": f"layer{i}", "layer": f"layer{i}", "position": i}
            for i in range(count)
        ],
        "arrays": [{"name": name, "shape": [steps, count]} for name in arrays],
    }  # fmt: skip
    text = json.dumps(facts).encode()
    return b"".join(
        [struct.pack("<I", len(text)), text, *(values.tobytes() for values in arrays.values())]
    )
