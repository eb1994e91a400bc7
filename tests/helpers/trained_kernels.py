"""Runs of small trained networks with every kind of convolution, and the kernels that they had."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fmapboard

STEPS = [0, 10, 20]
DRAWN = 8  # outputs and inputs of a kernel that are drawn at most


@dataclass
class Kernels:
    """A log directory, and the kernels of each layer at each step, [out, in, *kernel]."""

    logdir: Path
    at: dict[tuple[str, int], dict[str, Tensor]] = field(default_factory=dict)


def images_net() -> nn.Sequential:
    """An image network: RGB, many channels, depthwise, grouped and transposed convolutions."""
    layers = {
        "rgb": nn.Conv2d(3, 6, 5, padding=2),
        "plain": nn.Conv2d(6, 12, 3, padding=1),
        "depthwise": nn.Conv2d(12, 12, 3, padding=1, groups=12),
        "grouped": nn.Conv2d(12, 12, 2, groups=3),
        "grouped_rgb": nn.Conv2d(12, 8, (3, 2), groups=4),
        "up": nn.ConvTranspose2d(8, 6, 4, stride=2),
        "up_grouped": nn.ConvTranspose2d(6, 4, 3, groups=2),
        "last": nn.Conv2d(4, 1, 3),
    }
    model = nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
        model.add_module(f"{name}_tanh", nn.Tanh())
    return model


def other_axes_net() -> nn.Sequential:
    """Convolutions over sequences and volumes."""
    model = nn.Sequential()
    model.add_module("sequence", nn.Conv1d(2, 5, 4))
    model.add_module("sequence_up", nn.ConvTranspose1d(5, 4, 3, groups=1))
    model.add_module("unflattened", nn.Unflatten(1, (2, 2, 1)))
    model.add_module("volume", nn.Conv3d(2, 3, (2, 1, 3)))
    return model


def dense(layer: Any) -> Tensor:
    """The kernel from each input to each output channel, from the layer's response to an impulse.

    Zero between channels of different groups.
    """
    weight, groups = layer.weight.detach(), layer.groups
    dimensions = weight.dim() - 2
    inputs = layer.in_channels
    impulses = torch.eye(inputs).reshape(inputs, inputs, *[1] * dimensions)
    if layer.transposed:
        transposed = getattr(nn.functional, f"conv_transpose{dimensions}d")
        found: Tensor = transposed(impulses, weight, groups=groups)
    else:
        convolve = getattr(nn.functional, f"conv{dimensions}d")
        around = [side - 1 for side in weight.shape[2:]]
        found = convolve(impulses, weight, padding=around, groups=groups)
        found = found.flip(*range(2, dimensions + 2))  # a convolution layer correlates
    return found.transpose(0, 1)


def train(runs: Kernels, run: str, model: nn.Module, batch: Tensor, rate: float) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    convolutions = {
        name: layer for name, layer in model.named_children() if hasattr(layer, "kernel_size")
    }
    with fmapboard.watch(
        model, runs.logdir / run, every=1, kernels=1, max_channels=DRAWN, samples=2
    ) as board:
        for step in STEPS:
            runs.at[run, step] = {name: dense(layer) for name, layer in convolutions.items()}
            with board.step(step):
                optimizer.zero_grad()
                (model(batch) - 0.3).square().mean().backward()
                optimizer.step()


@pytest.fixture(scope="session")
def trained_kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """``one`` and ``two`` are of image networks, trained at two rates; ``axes`` of another one."""
    runs = Kernels(tmp_path_factory.mktemp("kernels"))
    for run, rate in (("one", 0.3), ("two", 1.0)):
        torch.manual_seed(5)
        train(runs, run, images_net(), torch.randn(2, 3, 12, 12), rate)
    train(runs, "axes", other_axes_net(), torch.randn(2, 2, 16), 0.3)
    return runs
