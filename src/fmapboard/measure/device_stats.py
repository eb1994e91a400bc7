"""Per-plane statistics of a tensor on an accelerator, without float64 and without waiting for it.

Some accelerators have no float64 (Apple's MPS, several XPUs). So the device only computes sums per
plane in the dtype of the tensor, scaled and centered such that nothing overflows or cancels; the
worker thread combines them in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.records import Floats

_LARGEST_EXPONENT = {torch.float32: 126, torch.float64: 1000}


def read(planes: Tensor, *, moments: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the finite values of each plane, on the device of ``planes``.

    Args:
        planes: [N, C, S], float32 or float64, with any values.
        moments: Also compute the four rows below, which the mean and the standard deviation need.

    Returns:
        Min and max, [2, N, C]: infinite and in the wrong order for a plane without finite values.
        Then [4, N, C]: the factor by which the plane was scaled, its scaled mean, and the sum and
        the sum of squares of its scaled values centered on that mean; empty without ``moments``.
        Then the counts of NaN, +Inf and -Inf, int32 [3, N, C].
    """
    masked = ~torch.isfinite(planes)
    lo = planes.masked_fill(masked, torch.inf).amin(2)
    hi = planes.masked_fill(masked, -torch.inf).amax(2)
    sums = _sums(planes, masked, lo, hi) if moments else planes.new_empty(0)
    nan = torch.isnan(planes).sum(2, dtype=torch.int32)
    up = (planes == torch.inf).sum(2, dtype=torch.int32)
    down = (planes == -torch.inf).sum(2, dtype=torch.int32)
    return torch.stack([lo, hi]), sums, torch.stack([nan, up, down])


def _sums(planes: Tensor, masked: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """Factor, scaled mean, and centered sum and sum of squares of each plane, [4, N, C]."""
    limit = _LARGEST_EXPONENT[planes.dtype]
    magnitude = torch.maximum(lo.abs(), hi.abs())
    unit = torch.exp2(-torch.floor(torch.log2(magnitude)).clamp(-limit, limit))
    values = planes.masked_fill(masked, 0.0).mul_(unit.unsqueeze(2))
    count = planes.shape[2] - masked.sum(2, dtype=torch.int32)
    mean = values.sum(2) / count.clamp(min=1)
    values.sub_(mean.unsqueeze(2)).masked_fill_(masked, 0.0)
    return torch.stack([unit, mean, values.sum(2), values.square_().sum(2)])


def combine(
    parts: list[npt.NDArray[Any]], size: int
) -> tuple[tuple[Floats, Floats, Floats, Floats], npt.NDArray[np.int64]]:
    """Statistics of each channel over all planes.

    Args:
        parts: What ``read`` returned, on the host.
        size: Number of values per plane.

    Returns:
        Min, max, mean and std, each f64 [C], NaN for a channel without finite values; and the
        counts of NaN, +Inf and -Inf, [3, C].
    """
    lo, hi = parts[0].astype(np.float64)
    counts = size - parts[2].sum(0, dtype=np.int64)  # [N, C]
    lowest, highest, is_empty = lo.min(0), hi.max(0), counts.sum(0) == 0
    lowest[is_empty] = highest[is_empty] = np.nan
    mean, std = _moments(parts[1], counts) if parts[1].size else np.full((2, len(lowest)), np.nan)
    return (lowest, highest, mean, std), parts[2].sum(1, dtype=np.int64)


def _moments(sums: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Mean and std of each channel, f64 [C], from ``_sums`` [4, N, C] and finite counts [N, C]."""
    units, means, rests, squares = sums.astype(np.float64)
    total = counts.sum(0)
    # All planes in the unit of the channel's largest one, so that no square overflows.
    unit = np.where(counts > 0, units, np.inf).min(0)
    unit[np.isinf(unit)] = 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = unit / units
        rest = np.where(counts > 0, rests / counts, 0.0)
        of_plane = (means + rest) * ratio
        mean = (counts * of_plane).sum(0) / total
        spread = (squares - counts * np.square(rest)) * np.square(ratio)
        spread += counts * np.square(of_plane - mean)
        std = np.sqrt(np.maximum(np.where(counts > 0, spread, 0.0).sum(0), 0.0) / total)
    return mean / unit, std / unit
