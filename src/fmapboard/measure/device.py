"""Per-channel statistics of a tensor on an accelerator, without float64 and without waiting for it.

Some accelerators have no float64 (Apple's MPS, several XPUs), and every operation is a kernel
launch that reads the tensor from device memory again. There are two ways to read:

- ``read`` takes at most three launches and three reads. A channel with NaN or infinite values is
  flagged exactly, but the values are not counted, and its mean and std are not known.
- ``read_exactly`` counts and measures any values, with about 30 launches per 32 MB.

The worker thread finalizes both in float64 (``combine`` and ``combine_exactly``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.records import Floats

HALVES = (torch.float16, torch.bfloat16)
"""Read directly on accelerators; sums are accumulated in float32."""

_LARGEST_EXPONENT = {torch.float32: 126, torch.float64: 1000}
_WITHOUT_AMINMAX = ("mps",)
"""Types of devices that lack `aminmax` or `var_mean` in a supported version of torch."""

_CHUNK_BYTES = 2**25
_RESOLVED = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""Below this ratio of std to mean, ``read`` loses digits of the std: more than about 0.1 %."""


class Combined(NamedTuple):
    """Statistics of each channel.

    Attributes:
        numbers: Min, max, mean and std, f64 [4, C]; NaN where there is none or it is not known.
        nonfinite: Counts of NaN, +Inf and -Inf, i64 [3, C].
        counted: False if a count above 0 is a lower bound, and not all extremes are known.
        settled: True if ``read`` suffices for this tensor: all values finite, std resolved.
    """

    numbers: Floats
    nonfinite: npt.NDArray[np.int64]
    counted: bool
    settled: bool


def read(planes: Tensor, *, moments: bool = True) -> tuple[Tensor, ...]:
    """Extremes and moments of each channel; NaN and infinite values propagate.

    Args:
        planes: [N, C, S] of a floating-point dtype, with any strides.
        moments: Also read what the mean and the standard deviation need.

    Returns:
        On the device, min and max in the dtype of ``planes``: of each plane, [N, C], if these are
        computed on the way, otherwise of each channel, [C]. With ``moments``, also variance and
        mean [C], or for 16-bit types the sum and the 2-norm, f32 [C].
    """
    lacks_both = planes.device.type in _WITHOUT_AMINMAX
    if lacks_both:
        lo = planes.amin((0, 2))
        hi = planes.amax((0, 2))
    elif planes.shape[2] == 1:
        lo, hi = planes.squeeze(2).aminmax(dim=0)
    else:
        lo, hi = planes.aminmax(dim=2)
    if not moments:
        return lo, hi
    if planes.dtype in HALVES:
        sums = planes.sum((0, 2), dtype=torch.float32)
        norms = torch.linalg.vector_norm(planes, dim=(0, 2), dtype=torch.float32)
        return lo, hi, sums, norms
    if lacks_both:
        return lo, hi, planes.var((0, 2), correction=0), planes.mean((0, 2))
    variance, mean = torch.var_mean(planes, (0, 2), correction=0)
    return lo, hi, variance, mean


def plane_extremes(planes: Tensor) -> tuple[Tensor, Tensor]:
    """Min and max [N, C] of planes [N, C, S] on an accelerator; NaN propagates."""
    if planes.device.type in _WITHOUT_AMINMAX:
        return planes.amin(2), planes.amax(2)
    lo, hi = planes.aminmax(dim=2)
    return lo, hi


def combine(parts: Sequence[Tensor], count: int) -> Combined:
    """Finalize what ``read`` returned.

    Args:
        parts: The result of ``read``, on the host.
        count: Number of values per channel.
    """
    dtype = parts[0].dtype
    lo, hi, *rest = (part.double().numpy() for part in parts)
    if lo.ndim == 2:  # [N, C]
        lo = lo.min(0)
        hi = hi.max(0)
    nan = np.isnan(lo) | np.isnan(hi)
    nonfinite = np.stack([nan, hi == np.inf, lo == -np.inf])
    is_finite = ~nonfinite.any(0)
    same = lo == hi
    mean = np.full(len(lo), np.nan)
    std = np.full(len(lo), np.nan)
    settled = bool(is_finite.all())
    if rest:
        with np.errstate(invalid="ignore", over="ignore"):
            if dtype in HALVES:
                mean = rest[0] / count
                variance = np.square(rest[1]) / count - np.square(mean)
            else:
                variance, mean = rest
            mean = np.where(same, lo, mean)
            std = np.where(same, 0.0, np.sqrt(np.maximum(variance, 0.0)))
            in_range, is_resolved = _trust(lo, hi, mean, std, dtype)
        is_known = is_finite & in_range
        mean[~is_known] = np.nan
        std[~is_known] = np.nan
        settled = bool((is_known & is_resolved).all())
    lo = np.where(np.isfinite(lo), lo, np.nan)
    hi = np.where(np.isfinite(hi), hi, np.nan)
    numbers = np.stack([lo, hi, mean, std])
    return Combined(numbers, nonfinite.astype(np.int64), bool(is_finite.all()), settled)


def read_exactly(planes: Tensor, *, moments: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the finite values of each channel, on the device of ``planes``.

    The tensor is read in K chunks of samples, so that temporary copies take at most 100 MB, or
    three planes if those are larger.

    Args:
        planes: [N, C, S] of a floating-point dtype, with any values; 16-bit types are converted to
            float32.
        moments: Also compute the four rows below, which the mean and the standard deviation need.

    Returns:
        Per chunk, min and max [2, K, C]: infinite and in the wrong order without finite values.
        Then [4, K, C]: the factor by which the chunk was scaled, its scaled mean, and the sum and
        the sum of squares of its scaled values centered on that mean; empty without ``moments``.
        Then the numbers of finite values, NaN, +Inf and -Inf, int32 [4, K, C].
    """
    wide = planes.dtype in _LARGEST_EXPONENT
    size = planes.shape[2] * (planes.element_size() if wide else 4)
    per_chunk = max(1, _CHUNK_BYTES // size)  # planes
    channels = planes.shape[1]
    rows = [
        [
            _read_chunk(chunk if wide else chunk.to(torch.float32), moments=moments)
            for chunk in torch.split(some, min(per_chunk, channels), 1)
        ]
        for some in torch.split(planes, max(1, per_chunk // channels), 0)
    ]
    if len(rows) == len(rows[0]) == 1:
        return rows[0][0]

    def whole(part: int) -> Tensor:
        return torch.cat([torch.cat([chunk[part] for chunk in row], 2) for row in rows], 1)

    return whole(0), whole(1), whole(2)


def _read_chunk(planes: Tensor, *, moments: bool) -> tuple[Tensor, Tensor, Tensor]:
    """What ``read_exactly`` returns, of one chunk [n, c, S]: K is 1."""
    masked = (planes - planes) != 0  # NaN and infinite values
    lo = planes.masked_fill(masked, torch.inf).amin((0, 2))  # [c]
    hi = planes.masked_fill(masked, -torch.inf).amax((0, 2))  # [c]
    bad = masked.sum((0, 2), dtype=torch.int32)  # [c]
    finite = len(planes) * planes.shape[2] - bad
    sums = lo.new_empty(0, *lo.shape)
    if moments:
        sums = _sums(planes, masked, finite, torch.maximum(lo.abs(), hi.abs()))
    nan = (planes != planes).sum((0, 2), dtype=torch.int32)
    up = (planes == torch.inf).sum((0, 2), dtype=torch.int32)
    counts = torch.stack([finite, nan, up, bad - nan - up])
    return torch.stack([lo, hi])[:, None], sums[:, None], counts[:, None]


def _sums(planes: Tensor, masked: Tensor, finite: Tensor, magnitude: Tensor) -> Tensor:
    """Factor, scaled mean, and centered sum and sum of squares of each channel, [4, c]."""
    limit = _LARGEST_EXPONENT[planes.dtype]
    unit = torch.exp2(-torch.floor(torch.log2(magnitude)).clamp(-limit, limit))
    values = planes.masked_fill(masked, 0.0).mul_(unit[:, None])
    mean = values.sum((0, 2)) / finite.clamp(min=1)
    values.sub_(mean[:, None]).masked_fill_(masked, 0.0)
    return torch.stack([unit, mean, values.sum((0, 2)), values.square_().sum((0, 2))])


def combine_exactly(parts: Sequence[Tensor], dtype: torch.dtype) -> Combined:
    """Finalize what ``read_exactly`` returned.

    Args:
        parts: The result of ``read_exactly``, on the host.
        dtype: Dtype of the tensor that was read.
    """
    extremes, sums, found = (part.numpy() for part in parts)
    lo, hi = extremes.astype(np.float64)
    counts = found[0].astype(np.int64)  # [K, C]
    nonfinite = found[1:].sum(1, dtype=np.int64)
    lowest = lo.min(0)
    highest = hi.max(0)
    is_empty = counts.sum(0) == 0
    lowest[is_empty] = np.nan
    highest[is_empty] = np.nan
    mean = np.full(len(lowest), np.nan)
    std = np.full(len(lowest), np.nan)
    settled = not nonfinite.any()
    if sums.size:
        mean, std = _moments(sums, counts)
        in_range, is_resolved = _trust(lowest, highest, mean, std, dtype)
        settled = settled and bool((in_range & is_resolved).all())
    numbers = np.stack([lowest, highest, mean, std])
    return Combined(numbers, nonfinite, True, settled)


def _trust(
    lo: Floats, hi: Floats, mean: Floats, std: Floats, dtype: torch.dtype
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether ``read`` gives a channel's mean and std at all, and with all digits; bool [C] each.

    Squares beyond the range of float32 overflow or vanish.
    """
    same = lo == hi
    in_range = same | ((std > 1e-18) & (np.maximum(np.abs(lo), np.abs(hi)) < 1e15))
    return in_range, same | (std > _RESOLVED[dtype] * np.abs(mean))


def _moments(sums: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Mean and std of each channel, f64 [C], from ``_sums`` [4, K, C] and finite counts [K, C]."""
    units, means, rests, squares = sums.astype(np.float64)
    total = counts.sum(0)
    # All chunks in the unit of the channel's largest one, so that no square overflows.
    unit = np.where(counts > 0, units, np.inf).min(0)
    unit[np.isinf(unit)] = 1.0
    with np.errstate(all="ignore"):  # of channels without finite values
        ratio = unit / units
        rest = np.where(counts > 0, rests / counts, 0.0)
        of_chunk = (means + rest) * ratio
        mean = (counts * of_chunk).sum(0) / total
        spread = (squares - counts * np.square(rest)) * np.square(ratio)
        spread += counts * np.square(of_chunk - mean)
        std = np.sqrt(np.maximum(np.where(counts > 0, spread, 0.0).sum(0), 0.0) / total)
    return mean / unit, std / unit
