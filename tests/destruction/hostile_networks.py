"""A network for the commands that need one."""

from __future__ import annotations

from torch import nn


def small() -> nn.Sequential:
    """A classifier of two classes."""
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    return nn.Sequential(nn.Conv2d(3, 4, 5, stride=4), nn.ReLU(), *pooled)
