"""Four runs for the columns of a comparison: alike, renamed, without a layer, with long names."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from compared_runs import IMAGES
from torch import nn

import fmapboard

LONG = "resnet_small_augmented_cosine_schedule_weight_decay_0.0005_batch_256_seed_"
BASE, AGAIN = "user@host", LONG + "1"
"""``AGAIN`` is trained like ``BASE``, with other weights."""
RENAMED, SHORT = LONG + "2", "short"
"""``RENAMED`` has other layer names, and ``SHORT`` has no second convolution."""
STEPS = [0, 10, 20]


def network(names: tuple[str, ...], seed: int) -> nn.Sequential:
    """A convolution per name, each followed by a ReLU."""
    torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for i, name in enumerate(names):
        layers[name] = nn.Conv2d(3 if i == 0 else 6, 6, 3, padding=1)
        layers[f"relu_of_{name}"] = nn.ReLU()
    return nn.Sequential(layers)


def log(
    run: Path, names: tuple[str, ...], seed: int, images: torch.Tensor = IMAGES,
    steps: list[int] = STEPS,
) -> None:  # fmt: skip
    """Log steps in which the weights of all layers grow by 10 % per step."""
    model = network(names, seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, run, every=1, samples=2) as board:
        for step in steps:
            with board.step(step):
                optimizer.zero_grad()
                model(images).sum().backward()
                optimizer.step()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter *= 1.1


@pytest.fixture(scope="session")
def column_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("columns")
    log(root / BASE, ("first", "second"), 0)
    log(root / AGAIN, ("first", "second"), 1)
    log(root / RENAMED, ("conv1", "conv2"), 0, IMAGES.flip(0), [0, 10, 30])
    log(root / SHORT, ("first",), 2)
    return root
