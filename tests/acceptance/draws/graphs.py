"""Nodes and links, made up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor


def cora(*_: Any) -> tuple[Tensor, ...]:
    """A graph of three communities: its normalized links, words of each node, and classes."""
    random, kind = Generator().manual_seed(2), torch.arange(150) % 3
    links = torch.where(kind[:, None] == kind, 0.06, 0.005).bernoulli(generator=random)
    links = (links + links.T + torch.eye(150)).clamp(max=1)
    words = torch.where(torch.arange(60) // 20 == kind[:, None], 0.12, 0.02)
    words, scale = words.bernoulli(generator=random), links.sum(1).rsqrt()
    return scale[:, None] * links * scale, words / words.sum(1, True).clamp(min=1), kind
