"""Small networks that are trained with attribution, and LayerCAM from torch.autograd alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


class Residual(nn.Module):
    """A block whose in-place ReLU runs twice; the second time on a sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += x
        found: Tensor = self.relu(out)
        return found


def residual_network() -> nn.Sequential:
    """Maps of 16×12 behind the stem and of 8×6 behind the block "3"."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), Residual(8),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip


def batch(seed: int = 1, images: int = 5) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(seed)
    return torch.randn(images, 3, 16, 12, generator=made), torch.arange(images) % 4


def train(
    model: nn.Module,
    *,
    steps: int = 1,
    samples: int = 2,
    attribution: Any = True,
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    images: Tensor | None = None,
    lr: float = 0.1,
    **options: Any,
) -> list[LoggedStep]:
    """Train with SGD, with every step logged."""
    x, y = batch()
    x = x if images is None else images
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=lr), MemoryWriter()
    options = {
        "samples": samples,
        "attribution": attribution,
        "every": 1,
        "writer": kept,
        **options,
    }
    with fmapboard.watch(model, optimizer=optimizer, **options):
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(x), y[: len(x)]).backward()
            optimizer.step()
    return kept.steps


def reference(
    model: nn.Module,
    layer: str,
    *,
    call: int = 1,
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    images: Tensor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """LayerCAM [N, H, W] of the loss and norms of the gradients [N], on a copy of the model."""
    twin, seen = copy.deepcopy(model), list[Tensor]()
    x, y = batch()
    x = x if images is None else images

    def keep(module: nn.Module, args: Any, out: Tensor) -> Tensor:
        if out.requires_grad:
            out.retain_grad()
            seen.append(out)
        return out.clone()  # an operation behind it must not overwrite the output

    twin.get_submodule(layer).register_forward_hook(keep)
    loss(twin(x), y[: len(x)]).backward()
    output = seen[call - 1]
    gradient = output.grad
    assert gradient is not None
    heat = (torch.relu(-gradient) * output.detach()).sum(1)
    return heat.numpy(), gradient.flatten(1).norm(dim=1).numpy()
