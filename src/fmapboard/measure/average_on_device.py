"""Downscale maps on an accelerator, so that only what is drawn is copied to the host."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.measure.device_stats import HALVES


def average(maps: Tensor, max_side: int) -> tuple[Tensor, int]:
    """Average maps over square blocks until no side exceeds ``max_side`` px.

    As ``render.average.shrink`` on the host, but a float32 sum that overflows stays infinite (see
    ``render.quantize.Averaged``).

    Args:
        maps: [N, C, H, W] on an accelerator, with a side longer than ``max_side``.
        max_side: In px.

    Returns:
        Contiguous means [N, C, h, w], f32 or f64, and the block's side in px.
    """
    block = -(-max(maps.shape[2:]) // max_side)
    wide = maps.to(torch.float32) if maps.dtype in HALVES else maps
    means: Tensor = functional.avg_pool2d(wide, block, ceil_mode=True)
    return means.contiguous(), block
