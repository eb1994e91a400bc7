"""A tensor's values for a histogram: all of a small one, an even sample of a large one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from fmapboard.records import Sample

SAMPLE_SIZE = 16_384
"""Histograms read at most this many values of a tensor; below it, every value. A bucket that holds
the share p is told with a relative standard error of sqrt((1 - p) / (16384 * p)): 8 % of a bucket
that holds 1 %, 2 % of one that holds 10 %."""


@dataclass(frozen=True, slots=True)
class PendingSample:
    """`records.Sample` still on the device."""

    values: Tensor
    total: int

    def to_host(self, lo: float = math.nan, hi: float = math.nan) -> Sample:
        """As numbers; ``lo`` and ``hi`` are the whole tensor's finite extremes where known."""
        return Sample(self.values.cpu().numpy(), self.total, lo, hi)


def sample(tensor: Tensor) -> PendingSample:
    """At most `SAMPLE_SIZE` values for a histogram, a copy: all of a small tensor.

    Of complex numbers the absolute values.

    Of a larger one every k-th in memory order, k having no factor in common with any side, so that
    the sample walks through all rows, columns and channels. No random number is drawn.
    """
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = tensor.abs()
    flat, total = _in_memory_order(tensor), tensor.numel()
    stride = _stride(total, tensor.shape)
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    if stride > 1:
        flat = flat[::stride]
    return PendingSample(flat.clone() if flat.dtype == dtype else flat.to(dtype), total)


def sample_of_each(tensor: Tensor) -> Tensor:
    """`sample` of each of several tensors alone: [N, ...] contiguous, real -> values [N, S]."""
    stride = _stride(tensor[0].numel(), tensor.shape[1:])
    return tensor.detach().flatten(1)[:, ::stride].clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=1024)
def _stride(total: int, shape: torch.Size) -> int:
    stride = -(-total // SAMPLE_SIZE)
    while stride > 1 and any(math.gcd(stride, side) > 1 for side in shape):
        stride += 1
    return stride


def _in_memory_order(tensor: Tensor) -> Tensor:
    """The tensor flattened [S], as a view wherever it is dense in memory in any axis order."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.permute(order).reshape(-1)
