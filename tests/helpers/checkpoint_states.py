"""The state dict of a small network, and files that hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))


OWN = (
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
)


def state(value: float = 0.5) -> dict[str, Tensor]:
    return {name: torch.full_like(tensor, value) for name, tensor in network().state_dict().items()}


def prefixed(prefix: str) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in state().items()}


def saved(content: Any, path: Path) -> Path:
    torch.save(content, path)
    return path
