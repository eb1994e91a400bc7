"""Norms of tokens, and all features of one image's: a file of its own for layers of tokens only."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fmapboard.measure.layout import MapsView, as_pictures

MOST_TOKENS = 1024
"""Of larger grids, every second, third, ... row and column is kept.

With 768 features in float32, 1,024 tokens take 3 MiB per layer and step.
"""


def token_norms(maps: Tensor) -> Tensor:
    """Largest and median 2-norm of the tokens, and 2-norm of them all, f32 [3].

    Nothing waits for the device.

    Args:
        maps: [N, C, *spatial]; each position of a sample is a token of C features.
    """
    norms = torch.linalg.vector_norm(maps, dim=1, dtype=_wide(maps)).flatten()  # [tokens]
    total = torch.linalg.vector_norm(norms)
    return torch.stack([norms.max(), norms.median(), total]).to(torch.float32)


def image_of_tokens(view: MapsView) -> Tensor | None:
    """All features of the first image's tokens, a contiguous copy [h, w, C]; None without a grid.

    It has at most ``MOST_TOKENS`` tokens.
    """
    maps = view.maps if view.patches is None else view.patches
    if maps.dim() not in (4, 6):
        return None
    pictures, _, _ = as_pictures(maps[:1])
    image = pictures[0].movedim(0, -1)  # [H, W, C]
    tokens = image.shape[0] * image.shape[1]
    stride = math.ceil(math.sqrt(tokens / MOST_TOKENS))
    kept = image[::stride, ::stride]
    return kept.clone(memory_format=torch.contiguous_format)


def _wide(maps: Tensor) -> torch.dtype:
    return torch.float64 if maps.dtype == torch.float64 else torch.float32
