"""Per-channel statistics of a tensor over the whole batch, without subsampling.

The training thread only computes sums and extremes (``plane_sums`` on the CPU, ``device_stats`` on
accelerators); ``pending_stats.finalize`` finalizes the statistics in the worker thread.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fmapboard.measure import device_stats, plane_sums
from fmapboard.measure.pending_stats import (
    PendingStatistics,
    PendingStatisticsPerSample,
    Reading,
)


def statistics(
    maps: Tensor, floor: float | None = None, *, moments: bool = True, bounded: bool = False
) -> PendingStatistics:
    """Compute min, max, mean, std, non-finite counts and flags of each channel.

    Args:
        maps: [N, C, ...] float32 or float64 on the CPU, not empty; no reference to it is kept.
        floor: Output of the activation when it is off, rounded to the dtype of the activation's
            output; required for ``Statistics.dead``.
        moments: Also compute mean and std; without it they may be NaN.
        bounded: The activation clamps its output, so no value can be below ``floor``.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    parts: tuple[Tensor, ...] | None
    if not moments:
        parts = plane_sums.read_extremes(planes, floor if bounded else None)
    elif plane_sums.is_short(planes):
        parts, planes = plane_sums.read_across(planes), planes.permute(2, 1, 0)  # [S, C, N]
    else:
        parts = plane_sums.read(planes)
    samples, _, size = planes.shape
    if parts is None:
        return PendingStatistics((_masked_statistics(planes),), samples, size, floor, "masked")
    return PendingStatistics(parts, samples, size, floor)


def statistics_on_device(
    maps: Tensor,
    floor: float | None = None,
    *,
    moments: bool = True,
    exactly: bool = True,
    settled: Callable[[bool], None] | None = None,
) -> tuple[PendingStatistics, tuple[Tensor, Tensor] | None]:
    """Compute ``statistics`` on an accelerator, without waiting for it.

    Args:
        maps: [N, C, ...] of a floating-point dtype, not empty; read in stream order.
        floor: As in ``statistics``.
        moments: As in ``statistics``.
        exactly: Count non-finite values (``device_stats.read_exactly``) instead of only flagging
            them (``device_stats.read``).
        settled: See ``PendingStatistics``.

    Returns:
        The statistics; and min and max [N, C] of each plane, if they were computed on the way.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    samples, _, size = planes.shape
    parts: tuple[Tensor, ...]
    if exactly:
        parts, extremes = device_stats.read_exactly(planes, moments=moments), None
    else:
        parts, extremes = device_stats.read(planes, moments=moments)
    reading: Reading = "device_exact" if exactly else "device"
    found = PendingStatistics(parts, samples, size, floor, reading, maps.dtype, settled)
    return found, extremes


def statistics_per_sample(
    maps: Tensor, floor: float | None = None, *, moments: bool = True
) -> PendingStatisticsPerSample:
    """Compute ``statistics`` of each sample on its own.

    Args:
        maps: [N, C, ...] float32 or float64 on the CPU, not empty.
        floor: As in ``statistics``.
        moments: As in ``statistics``.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    parts, irregular = plane_sums.read_each(planes, moments=moments)
    fallbacks = {n: statistics(maps[n : n + 1], floor, moments=moments) for n in irregular}
    return PendingStatisticsPerSample(parts, planes.shape[2], floor, fallbacks)


def _masked_statistics(planes: Tensor) -> Tensor:
    """Statistics of any values on the CPU, f64 [7, C], from float64 sums over the finite values.

    The rows are min, max, mean, std, and the counts of NaN, +Inf and -Inf.
    """
    finite = torch.isfinite(planes)
    count = finite.sum((0, 2)).double()  # [C]
    lo = planes.masked_fill(~finite, torch.inf).amin((0, 2)).double()
    hi = planes.masked_fill(~finite, -torch.inf).amax((0, 2)).double()
    # Scale each channel to about 1: the square of 1e300 would overflow, that of 1e-200 underflow.
    exponent = torch.frexp(torch.maximum(lo.abs(), hi.abs())).exponent.clamp(-1000, 1000)
    unit = torch.exp2(-exponent.double())  # [C]
    scaled = planes.masked_fill(~finite, 0.0).double() * unit[None, :, None]
    mean = scaled.sum((0, 2)) / count
    # Without finite values the mean is NaN, but then every value is masked.
    centered = (scaled - mean[None, :, None].nan_to_num()).masked_fill_(~finite, 0.0)
    std = (centered.square().sum((0, 2)) / count).sqrt() / unit
    mean = mean / unit
    is_empty = count == 0
    nan = torch.isnan(planes).sum((0, 2)).double()
    up, down = ((planes == end).sum((0, 2)).double() for end in (torch.inf, -torch.inf))
    return torch.stack(
        [
            lo.masked_fill(is_empty, torch.nan),
            hi.masked_fill(is_empty, torch.nan),
            mean,
            std,
            nan,
            up,
            down,
        ]
    )
