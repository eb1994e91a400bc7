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
_RESOLVED = {
    torch.float32: 1e-4,
    torch.float64: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
}
"""Below this ratio of std to mean, ``read`` loses digits of the std: more than about 0.1 %."""
_LEAST_STD = 1e-18
_LARGEST_VALUE = 1e15
"""Squares beyond these overflow or vanish in float32."""
_PER_CHANNEL = (0, 2)
"""Axes of [N, C, S] that are reduced."""

_Counts = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Read = tuple[Tensor, Tensor, Tensor]
"""Result of ``read_exactly``."""


class Combined(NamedTuple):
    """Statistics of each channel.

    Attributes:
        numbers: Min, max, mean and std, f64 [4, C]; NaN where there is none or it is not known.
        nonfinite: Counts of NaN, +Inf and -Inf, i64 [3, C].
        counted: False if a count above 0 is a lower bound, and not all extremes are known.
        settled: True if ``read`` suffices for this tensor: all values finite, std resolved.
    """

    numbers: Floats
    nonfinite: _Counts
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
        lo = planes.amin(_PER_CHANNEL)
        hi = planes.amax(_PER_CHANNEL)
    elif planes.shape[2] == 1:
        lo, hi = planes.squeeze(2).aminmax(dim=0)
    else:
        lo, hi = planes.aminmax(dim=2)
    if not moments:
        return lo, hi
    if planes.dtype in HALVES:
        sums = planes.sum(_PER_CHANNEL, dtype=torch.float32)
        norms = torch.linalg.vector_norm(planes, dim=_PER_CHANNEL, dtype=torch.float32)
        return lo, hi, sums, norms
    if lacks_both:
        variance = planes.var(_PER_CHANNEL, correction=0)
        mean = planes.mean(_PER_CHANNEL)
    else:
        variance, mean = torch.var_mean(planes, _PER_CHANNEL, correction=0)
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
    up = hi == np.inf
    down = lo == -np.inf
    nonfinite = np.stack([nan, up, down])
    is_finite = ~nonfinite.any(0)
    counted = bool(is_finite.all())
    mean = _unknown(len(lo))
    std = _unknown(len(lo))
    settled = counted
    if rest:
        with np.errstate(invalid="ignore", over="ignore"):
            if dtype in HALVES:
                sums, norms = rest
                mean = sums / count
                mean_square = np.square(norms) / count
                variance = mean_square - np.square(mean)
            else:
                variance, mean = rest
            variance = np.maximum(variance, 0.0)
            same = lo == hi
            std = np.sqrt(variance)
            mean = np.where(same, lo, mean)
            std = np.where(same, 0.0, std)
            in_range, is_resolved = _trust(lo, hi, mean, std, dtype)
        is_known = is_finite & in_range
        mean[~is_known] = np.nan
        std[~is_known] = np.nan
        suffices = is_known & is_resolved
        settled = bool(suffices.all())
    extremes = np.stack([lo, hi])
    extremes[~np.isfinite(extremes)] = np.nan
    numbers = np.stack([*extremes, mean, std])
    return Combined(numbers, nonfinite.astype(np.int64), counted, settled)


def _unknown(channels: int) -> Floats:
    return np.full(channels, np.nan)


def read_exactly(planes: Tensor, *, moments: bool = True) -> _Read:
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
    dtype = planes.dtype if planes.dtype in _LARGEST_EXPONENT else torch.float32
    channels, size = planes.shape[1:]
    plane_bytes = size * dtype.itemsize
    per_chunk = max(1, _CHUNK_BYTES // plane_bytes)  # planes
    samples_per_chunk = max(1, per_chunk // channels)
    channels_per_chunk = min(per_chunk, channels)
    rows = []
    for samples in torch.split(planes, samples_per_chunk):
        row = []
        for chunk in torch.split(samples, channels_per_chunk, 1):
            found = _read_chunk(chunk.to(dtype), moments=moments)
            row.append(found)
        rows.append(_joined(row, 2))
    return _joined(rows, 1)


def _joined(chunks: list[_Read], axis: int) -> _Read:
    if len(chunks) == 1:
        return chunks[0]
    extremes, sums, counts = zip(*chunks, strict=True)
    return torch.cat(extremes, axis), torch.cat(sums, axis), torch.cat(counts, axis)


def _read_chunk(planes: Tensor, *, moments: bool) -> _Read:
    """What ``read_exactly`` returns, of one chunk [n, c, S]: K is 1."""
    masked = (planes - planes) != 0  # NaN and infinite values
    lo = planes.masked_fill(masked, torch.inf).amin(_PER_CHANNEL)  # [c]
    hi = planes.masked_fill(masked, -torch.inf).amax(_PER_CHANNEL)  # [c]
    nonfinite = masked.sum(_PER_CHANNEL, dtype=torch.int32)  # [c]
    finite = len(planes) * planes.shape[2] - nonfinite
    sums = lo.new_empty(0, *lo.shape)
    if moments:
        magnitude = torch.maximum(lo.abs(), hi.abs())
        sums = _sums(planes, masked, finite, magnitude)
    is_nan = planes != planes
    is_up = planes == torch.inf
    nan = is_nan.sum(_PER_CHANNEL, dtype=torch.int32)  # [c]
    up = is_up.sum(_PER_CHANNEL, dtype=torch.int32)  # [c]
    down = nonfinite - nan - up
    extremes = torch.stack([lo, hi])
    counts = torch.stack([finite, nan, up, down])
    return extremes.unsqueeze(1), sums.unsqueeze(1), counts.unsqueeze(1)


def _sums(planes: Tensor, masked: Tensor, finite: Tensor, magnitude: Tensor) -> Tensor:
    """Factor, scaled mean, and centered sum and sum of squares of each channel, [4, c]."""
    limit = _LARGEST_EXPONENT[planes.dtype]
    exponent = torch.floor(torch.log2(magnitude))
    unit = torch.exp2(-exponent.clamp(-limit, limit))  # [c]
    values = planes.masked_fill(masked, 0.0)
    values.mul_(unit.unsqueeze(1))
    mean = values.sum(_PER_CHANNEL) / finite.clamp(min=1)  # [c]
    values.sub_(mean.unsqueeze(1))
    values.masked_fill_(masked, 0.0)
    rest = values.sum(_PER_CHANNEL)  # [c]
    squares = values.square_().sum(_PER_CHANNEL)  # [c]
    return torch.stack([unit, mean, rest, squares])


def combine_exactly(parts: Sequence[Tensor], dtype: torch.dtype) -> Combined:
    """Finalize what ``read_exactly`` returned.

    Args:
        parts: The result of ``read_exactly``, on the host.
        dtype: Dtype of the tensor that was read.
    """
    extremes, sums, found = [part.numpy() for part in parts]
    lows, highs = extremes.astype(np.float64)  # [K, C]
    finite = found[0].astype(np.int64)  # [K, C]
    nonfinite = found[1:].sum(1, dtype=np.int64)  # [3, C]
    lo = lows.min(0)
    hi = highs.max(0)
    is_empty = finite.sum(0) == 0
    lo[is_empty] = np.nan
    hi[is_empty] = np.nan
    mean = _unknown(len(lo))
    std = _unknown(len(lo))
    settled = not nonfinite.any()
    if sums.size:
        mean, std = _moments(sums, finite)
        in_range, is_resolved = _trust(lo, hi, mean, std, dtype)
        suffices = in_range & is_resolved
        settled = settled and bool(suffices.all())
    numbers = np.stack([lo, hi, mean, std])
    return Combined(numbers, nonfinite, True, settled)


def _trust(
    lo: Floats, hi: Floats, mean: Floats, std: Floats, dtype: torch.dtype
) -> tuple[_Flags, _Flags]:
    """Whether ``read`` gives a channel's mean and std at all, and all digits; bool [C] each."""
    same = lo == hi
    largest = np.maximum(np.abs(lo), np.abs(hi))
    squares_are_safe = (std > _LEAST_STD) & (largest < _LARGEST_VALUE)
    is_resolved = std > _RESOLVED[dtype] * np.abs(mean)
    return same | squares_are_safe, same | is_resolved


def _moments(sums: npt.NDArray[Any], counts: _Counts) -> tuple[Floats, Floats]:
    """Mean and std of each channel, f64 [C], from ``_sums`` [4, K, C] and finite counts [K, C]."""
    units, means, rests, squares = sums.astype(np.float64)
    total = counts.sum(0)
    has_values = counts > 0
    # All chunks in the unit of the channel's largest one, so that no square overflows.
    unit = np.where(has_values, units, np.inf).min(0)
    unit[np.isinf(unit)] = 1.0
    with np.errstate(all="ignore"):  # of channels without finite values
        ratio = unit / units
        rest = np.where(has_values, rests / counts, 0.0)
        chunk_means = (means + rest) * ratio  # [K, C]
        mean = (counts * chunk_means).sum(0) / total
        within = squares - counts * np.square(rest)
        spread = within * np.square(ratio)
        spread += counts * np.square(chunk_means - mean)
        spread[~has_values] = 0.0
        whole_spread = np.maximum(spread.sum(0), 0.0)
        std = np.sqrt(whole_spread / total)
    return mean / unit, std / unit
