"""Subsample a tensor's values for a histogram."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from fmapboard.records import Sample

SAMPLE_SIZE = 16_384
"""Maximum number of values read for a histogram; a smaller tensor is read completely.

For a bucket that holds the fraction p of the values, the relative standard error is
sqrt((1 - p) / (16384 * p)): 8 % for a bucket that holds 1 %, 2 % for one that holds 10 %.
"""


@dataclass(frozen=True, slots=True)
class PendingSample:
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
    taken, total = _taken(tensor)
    dtype = torch.float64 if taken.dtype == torch.float64 else torch.float32
    return PendingSample(taken.clone() if taken.dtype == dtype else taken.to(dtype), total)


def samples(tensors: Sequence[Tensor], scale: Tensor | None = None) -> list[PendingSample]:
    """``sample`` of each tensor; on each device, one copy for all tensors of a dtype.

    Args:
        tensors: Any shapes, dtypes and devices, not empty.
        scale: Divide the values by this number; None for 1.
    """
    views = [_taken(tensor) for tensor in tensors]
    groups: defaultdict[tuple[torch.device, torch.dtype], list[int]] = defaultdict(list)
    for number, (view, _) in enumerate(views):
        groups[view.device, view.dtype].append(number)
    found: dict[int, PendingSample] = {}
    for (device, dtype), members in groups.items():
        joined = torch.cat([views[number][0] for number in members])  # [S1 + S2 + ...]
        joined = joined if dtype == torch.float64 else joined.float()
        if scale is not None:
            joined = joined.div_(scale.to(device))
        sizes = [len(views[number][0]) for number in members]
        for number, own in zip(members, joined.split_with_sizes(sizes), strict=True):
            found[number] = PendingSample(own, views[number][1])
    return [found[number] for number in range(len(views))]


def _taken(tensor: Tensor) -> tuple[Tensor, int]:
    """The values of ``sample``, a view if possible, and the number of values of the tensor."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = tensor.abs()
    flat, total = _in_memory_order(tensor), tensor.numel()
    stride = step_between(total, tensor.shape)
    return (flat[::stride] if stride > 1 else flat), total


def sample_of_each(tensor: Tensor) -> Tensor:
    """``sample`` of each entry along the first axis: contiguous real [N, ...] to values [N, S]."""
    stride = step_between(tensor[0].numel(), tensor.shape[1:])
    return tensor.detach().flatten(1)[:, ::stride].clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=1024)
def step_between(total: int, shape: torch.Size) -> int:
    """The k of ``sample``: every k-th of ``total`` values is taken."""
    stride = -(-total // SAMPLE_SIZE)
    while stride > 1 and any(math.gcd(stride, side) > 1 for side in shape):
        stride += 1
    return stride


def _in_memory_order(tensor: Tensor) -> Tensor:
    """The tensor flattened to [S]; a view if it is dense in memory, in any axis order."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.permute(order).reshape(-1)
