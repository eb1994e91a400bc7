"""Runs for the overview page: healthy, going wrong, a stored one, and a large answer."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from striped_training import STEPS, train
from torch import nn

import fmapboard
from fmapboard.health.states import CODES
from fmapboard.plugin.routes.health import STATES

HEALTHY_STEPS = list(range(0, 24, 3))
NAN_FROM = 30
STORED = "stored"
"""A copy of the stored training of format 1."""


def log_healthy(run: Path) -> None:
    """Train a convolution, a leaky activation and a second convolution: no channel is ever dead."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.LeakyReLU(), nn.Conv2d(6, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = torch.rand(1, 3, 20, 20)
    with fmapboard.watch(model, run, every=1, optimizer=optimizer, start_step=0) as board:
        for step in HEALTHY_STEPS:
            with board.step(step):
                optimizer.zero_grad()
                images = torch.cat([first, torch.rand(1, 3, 20, 20)])  # no batch comes twice
                model(images).square().mean().backward()
                optimizer.step()


@pytest.fixture(scope="session")
def overview_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``healthy``; ``ill``, with NaN from step 30 on and a dead channel of 16; and `STORED`."""
    root = tmp_path_factory.mktemp("overview")
    log_healthy(root / "healthy")
    train(root / "ill", STEPS, poison=NAN_FROM)
    golden = Path(__file__).parents[1] / "golden" / "format_1" / "training"
    shutil.copytree(golden, root / STORED)
    return root


LARGE_LAYERS, LARGE_STEPS = 3000, 200


def large_answer() -> bytes:
    """An answer of ``data/health``: 3000 layers, 200 steps, one layer non-finite from step 1000."""
    layer = {
        "name": "", "type": "Linear", "kernel_shape": None, "call": 1, "channels": 4, "values": 9,
        "drawn": 0, "activation": None, "key": None, "shown_at": None,
    }  # fmt: skip
    codes = np.ones((LARGE_STEPS, LARGE_LAYERS), np.uint8)
    codes[100:, 2000] = CODES.index("nonfinite")
    cells = {"offset": 0, "shape": codes.shape}
    facts: dict[str, Any] = {
        "run": "healthy", "steps": list(range(0, 10 * LARGE_STEPS, 10)),
        "wall_times": [1e9] * LARGE_STEPS, "written": LARGE_STEPS, "since": {},
        "first_nonfinite": None, "arrays": {}, "codes": cells,
        "states": [asdict(words) for words in STATES], "severe": {2000: "non-finite"},
        "shading": {"lo": 0.1, "hi": 10, "levels": cells},
        "layers": [
            {**layer, "label": f"layer{i}", "layer": f"layer{i}", "position": i}
            for i in range(LARGE_LAYERS)
        ],
    }  # fmt: skip
    return packed(facts, codes.tobytes())


def large_step() -> bytes:
    """An answer of ``data/health_step`` for it: at step 1000, a quarter is non-finite."""
    values = np.full(LARGE_LAYERS, 0.25, "<f4")
    facts = {
        "step": 1000, "steps": [1000] * LARGE_LAYERS, "others": [],
        "keys": [None] * LARGE_LAYERS, "channels": [4] * LARGE_LAYERS, "unchanged": {},
        "error": None, "arrays": {"nonfinite": {"offset": 0, "shape": [LARGE_LAYERS]}},
        "codes": {"offset": values.nbytes, "shape": [LARGE_LAYERS]},
    }  # fmt: skip
    return packed(facts, values.tobytes() + bytes(LARGE_LAYERS))


def packed(facts: dict[str, Any], parts: bytes) -> bytes:
    text = json.dumps(facts).encode()
    return struct.pack("<I", len(text)) + text + parts
