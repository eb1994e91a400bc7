"""Subsample a tensor's values for a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div, coprime
from fmapboard.model.tensors import packed
from fmapboard.records import Sample

SAMPLE_SIZE = 16_384
"""Maximum number of values read for a histogram; a smaller tensor is read completely.

For a bucket that holds the fraction p of the values, the relative standard error is
sqrt((1 - p) / (16384 * p)): 8 % for a bucket that holds 1 %, 2 % for one that holds 10 %.
"""


class PendingSample(NamedTuple):
    """A ``records.Sample`` that is still on the device.

    Attributes:
        values: f32 or f64 [S].
        total: Number of values of the whole tensor.
    """

    values: Tensor
    total: int

    def to_host(self, lo: float = math.nan, hi: float = math.nan) -> Sample:
        """Wait for the device and copy.

        Args:
            lo: Smallest finite value of the whole tensor, if known.
            hi: Largest finite value of the whole tensor, if known.
        """
        return Sample(self.values.cpu().numpy(), self.total, lo, hi)


def sample(tensor: Tensor) -> PendingSample:
    """Copy at most ``SAMPLE_SIZE`` values for a histogram; all values of a smaller tensor.

    From a larger tensor, every k-th value in memory order is taken. k shares no factor with the
    size of any axis, so the sample covers all rows, columns and channels. No random number is
    drawn. Complex numbers are replaced by their absolute values.
    """
    taken = _taken(tensor)
    dtype = torch.float64 if taken.dtype == torch.float64 else torch.float32
    return PendingSample(taken.to(dtype, copy=True), tensor.numel())


def samples(tensors: Sequence[Tensor], scale: Tensor | None = None) -> list[PendingSample]:
    """``sample`` of each tensor; on each device, one copy for all tensors of a dtype.

    Args:
        tensors: Any shapes, dtypes and devices, not empty.
        scale: Divide the values by this number; None for 1.
    """

    def final(joined: Tensor) -> Tensor:
        wide = joined if joined.dtype == torch.float64 else joined.float()
        if scale is None:
            return wide
        return wide.div_(scale.to(wide.device))

    taken = [_taken(tensor) for tensor in tensors]
    copies = packed(taken, final).split()
    result = []
    for values, tensor in zip(copies, tensors, strict=True):
        result.append(PendingSample(values, tensor.numel()))
    return result


def _taken(tensor: Tensor) -> Tensor:
    """The values of ``sample`` [S]; a view if the tensor is dense in memory, in any axis order."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = tensor.abs()
    if tensor.is_contiguous():
        flat = tensor.view(-1)
    else:
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        flat = tensor.permute(order).reshape(-1)
    least = ceil_div(tensor.numel(), SAMPLE_SIZE)
    stride = coprime(least, tensor.shape)
    if stride <= 1:
        return flat
    return flat[::stride]
