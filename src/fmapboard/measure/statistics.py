"""Per-channel statistics of a tensor over the whole batch, without subsampling.

The training thread only computes sums and extremes (``plane_sums`` on the CPU, ``device_stats`` on
accelerators); ``pending_stats.finalize`` finalizes the statistics in the worker thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure import device as device_stats
from fmapboard.measure import sums as plane_sums
from fmapboard.records import Floats, Statistics

# Statistics of a tensor between the training thread, which reads it, and the worker thread.
#
# The training thread keeps sums and extremes per plane; the worker thread finalizes the statistics
# from them, in float64. A plane is one channel of one sample.

MAX_PLANES = 2**16
"""Maximum number of planes finalized at a time; bounds the temporary float64 arrays."""


Reading = Literal["sums", "masked", "device", "device_exact"]


@dataclass(frozen=True, slots=True)
class PendingStatistics:
    """Statistics of one tensor before the per-plane sums are combined (see ``records.Statistics``).

    Attributes:
        parts: What was read, depending on ``reading``.
        samples: Number of planes per channel; after ``read_across``, the number of pixels.
        size: Number of values per plane; after ``read_across``, the number of samples.
        floor: Output of the activation when it is off (0 for ReLU); None for other layers.
        reading: ``"sums"``: two, four or seven tensors of ``plane_sums``. ``"masked"``: one tensor
            [7, C] of ``_masked_statistics``. ``"device"``: two or four tensors of
            ``device_stats.read``. ``"device_exact"``: three of ``device_stats.read_exactly``.
        dtype: Dtype of the tensor, if it was read on an accelerator.
        settled: Called once the statistics are final if the tensor was read on an accelerator, with
            ``device_stats.Combined.settled``.
    """

    parts: tuple[Tensor, ...]
    samples: int
    size: int
    floor: float | None
    reading: Reading = "sums"
    dtype: torch.dtype = torch.float32
    settled: Callable[[bool], None] | None = None

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.parts[0].shape[-1]

    def to_host(self) -> Statistics:
        """Wait for the device and finalize the statistics."""
        (numbers,) = finalize([self])
        return numbers


@dataclass(frozen=True, slots=True)
class PendingStatisticsPerSample:
    """Statistics of each sample on its own, before the per-plane sums are combined.

    Attributes:
        parts: The two or four tensors of ``plane_sums.read_each``.
        size: Number of values per plane.
        floor: Output of the activation when it is off (0 for ReLU); None for other layers.
        fallbacks: Index of a sample for which ``parts`` are not accurate (see
            ``plane_sums.read_each``) -> its own statistics.
    """

    parts: tuple[Tensor, ...]
    size: int
    floor: float | None
    fallbacks: dict[int, PendingStatistics]

    def to_host(self) -> list[Statistics]:
        """Wait for the device and finalize the statistics, one ``Statistics`` per sample."""
        parts = [part.cpu().numpy() for part in self.parts]
        with np.errstate(invalid="ignore", over="ignore"):  # in samples with a fallback
            lowest, highest, means, variances = _plane_moments([parts], [self.size])
            stds = np.sqrt(variances)
        same = (lowest == highest) & (self.size > 1)
        dead = None if self.floor is None else same & (highest == self.floor)
        none = np.zeros(lowest.shape[1], np.int64)
        results = []
        for n, (lo, hi, mean, std) in enumerate(zip(lowest, highest, means, stds, strict=True)):
            flags = same[n], None if dead is None else dead[n]
            fallback = self.fallbacks.get(n)
            own = Statistics(lo, hi, mean, std, none, none, none, *flags)
            results.append(own if fallback is None else fallback.to_host())
        return results


def finalize(pending: Sequence[PendingStatistics]) -> list[Statistics]:
    """Finalize the statistics of several tensors, in the given order.

    For small arrays the overhead of each NumPy call dominates. So tensors that ``plane_sums`` read
    the same way are concatenated along the channel axis and finalized in batches of at most
    ``MAX_PLANES`` planes, or of one larger tensor.
    """
    groups: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
    on_host: dict[int, list[npt.NDArray[Any]]] = {}
    results: dict[int, Statistics] = {}
    for number, one in enumerate(pending):
        if one.reading != "sums":
            results[number] = _ALONE[one.reading](one)
            continue
        parts = on_host[number] = [part.cpu().numpy() for part in one.parts]
        if len(parts) == 2:
            parts[:] = parts[0].min(0, keepdims=True), parts[1].max(0, keepdims=True)
        batches = groups[min(len(parts), 4), len(parts[0])]
        if not batches or sum(on_host[n][0].size for n in [*batches[-1], number]) > MAX_PLANES:
            batches.append([])
        batches[-1].append(number)
    for numbers in chain.from_iterable(groups.values()):
        finalized = _from_sums([(pending[number], on_host[number]) for number in numbers])
        results.update(zip(numbers, finalized, strict=True))
    return [results[number] for number in range(len(pending))]


_OnHost = tuple[PendingStatistics, list[npt.NDArray[Any]]]


def _from_masked(one: PendingStatistics) -> Statistics:
    """Statistics of a tensor that ``_masked_statistics`` read."""
    (rows,) = (part.cpu().numpy() for part in one.parts)
    (found,) = _split([one], rows[:4], rows[4:].astype(np.int64))
    return found


def _from_device(one: PendingStatistics) -> Statistics:
    """Statistics of a tensor that ``device_stats`` read."""
    parts = [part.cpu() for part in one.parts]
    if one.reading == "device":
        combined = device_stats.combine(parts, one.samples * one.size)
    else:
        combined = device_stats.combine_exactly(parts, one.dtype)
    if one.settled is not None:
        one.settled(combined.settled)
    (found,) = _split([one], combined.numbers, combined.nonfinite)
    return found if combined.counted else replace(found, counted=False)


_ALONE: dict[Reading, Callable[[PendingStatistics], Statistics]] = {
    "masked": _from_masked,
    "device": _from_device,
    "device_exact": _from_device,
}
"""Tensors with these readings are finalized one by one."""


def _from_sums(tensors: list[_OnHost]) -> Iterator[Statistics]:
    """Statistics of tensors that ``plane_sums`` read, all with equally many planes per channel."""
    lo, hi, means, variances = _plane_moments(
        [parts for _, parts in tensors], [one.size for one, _ in tensors]
    )
    lowest, highest, mean = lo.min(0), hi.max(0), means.mean(0)
    variance = (np.maximum(variances, 0.0) + np.square(means - mean)).mean(0)
    one_value = (lowest == highest) & ~np.isnan(mean)
    mean, std = np.where(one_value, lowest, mean), np.where(one_value, 0.0, np.sqrt(variance))
    numbers = np.stack([lowest, highest, mean, std])
    return _split([one for one, _ in tensors], numbers, np.zeros((3, len(mean)), np.int64))


def _split(
    tensors: list[PendingStatistics], numbers: Floats, nonfinite: npt.NDArray[np.int64]
) -> Iterator[Statistics]:
    """Split concatenated channels into one ``Statistics`` per tensor and set its flags.

    Args:
        tensors: The tensors, in the order of their channels.
        numbers: Min, max, mean and std, f64 [4, C].
        nonfinite: Counts of NaN, +Inf and -Inf, [3, C].
    """
    same = (numbers[0] == numbers[1]) & ~nonfinite.any(0)
    start = 0
    for one in tensors:
        own = slice(start, start + one.channels)
        start = own.stop
        minimum, maximum, mean, std = numbers[:, own]
        nan, up, down = nonfinite[:, own]
        constant = same[own] if one.samples * one.size > 1 else np.zeros_like(same[own])
        dead = None if one.floor is None else constant & (maximum == one.floor)
        yield Statistics(minimum, maximum, mean, std, nan, up, down, constant, dead)


def _plane_moments(
    read: Sequence[Sequence[npt.NDArray[Any]]], sizes: Sequence[int]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Min, max, mean and variance of each plane, each f64 [N, C]; NaN where they were not computed.

    Args:
        read: The parts that ``plane_sums`` computed, per tensor; channels are concatenated.
        sizes: Number of values per plane, per tensor.
    """
    lo, hi = (_concatenated([parts[n] for parts in read]) for n in (0, 1))
    if len(read[0]) == 2:
        unknown = np.full(lo.shape, np.nan)
        return lo, hi, unknown, unknown
    channels = [parts[0].shape[1] for parts in read]
    size = np.repeat(np.array(sizes, np.float64), channels)  # [C]
    means = _concatenated([parts[2] for parts in read]) / size
    squares = _concatenated([np.square(parts[3], dtype=np.float64).sum(2) for parts in read])
    variances = squares / size - np.square(means)
    start = 0
    for parts, values, count in zip(read, sizes, channels, strict=True):
        if len(parts) > 4:
            n, c = np.divmod(parts[4], count)
            at, rest, around = (n, start + c), parts[5].astype(np.float64) / values, parts[6]
            # The values were centered on the mean rounded to the dtype of the maps.
            means[at] = means[at].astype(parts[2].dtype).astype(np.float64) + rest
            variances[at] = np.square(around.astype(np.float64)).sum(1) / values - np.square(rest)
        start += count
    same = lo == hi  # avoid rounding errors in constant planes
    means[same], variances[same] = lo[same], 0.0
    return lo, hi, means, variances


def _concatenated(arrays: list[npt.NDArray[Any]]) -> Floats:
    """Arrays [N, C] concatenated along the channel axis, as f64."""
    return np.concatenate(arrays, axis=1, dtype=np.float64)


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
