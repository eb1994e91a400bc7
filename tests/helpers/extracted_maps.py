"""Untrained networks, random images, and a check that two sets of maps are equal."""

from __future__ import annotations

from typing import Any

import torch
import torchvision
from torch import Tensor, nn


def untrained(name: str, **options: Any) -> nn.Module:
    """A torchvision model with random weights, in eval mode."""
    extra = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    model: nn.Module = getattr(torchvision.models, name)(weights=None, **extra, **options)
    return model.eval()


def random_images(size: int = 64, batch: int = 2) -> Tensor:
    """Uniform random images [batch, 3, size, size]."""
    return torch.rand(batch, 3, size, size)


def assert_same_maps(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)  # in call order, none missing
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
