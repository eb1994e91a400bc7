"""A training loss, the logged gradient norms, and the true ones from an unwatched copy."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from fmapboard.records import LoggedStep

_PREFIX = "gradient_norm/"


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).square().mean()


def images(seed: int = 0, channels: int = 3) -> Tensor:
    """Random images [2, ``channels``, 8, 8], the same ones for the same seed."""
    return torch.randn(2, channels, 8, 8, generator=torch.Generator().manual_seed(seed))


def logged_norms(step: LoggedStep) -> dict[str, float]:
    """Parameter name, or ``total`` -> gradient norm."""
    return {
        tag.removeprefix(_PREFIX): norm
        for tag, norm in step.scalars.items()
        if tag.startswith(_PREFIX)
    }


def true_norms(model: nn.Module, x: Tensor) -> dict[str, float]:
    """The norms of the unscaled loss, computed on a copy that is not watched."""
    twin = copy.deepcopy(model)
    twin.zero_grad()
    loss_of(twin, x).backward()
    found = {n: p.grad.norm().item() for n, p in twin.named_parameters() if p.grad is not None}
    return {**found, "total": math.hypot(*found.values())}
