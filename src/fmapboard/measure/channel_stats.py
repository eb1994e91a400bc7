"""Per-channel numbers of a tensor, exact over the whole batch.

On the CPU the training thread only takes sums and extremes per plane (`plane_sums`); `to_host`
finalizes the statistics in the worker thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure import plane_sums
from fmapboard.records import Floats, Statistics

MAX_PLANES = 2**16
"""So many planes' numbers are worked out at a time, in about ten arrays of float64."""


@dataclass(frozen=True, slots=True)
class PendingStatistics:
    """`records.Statistics` before the small sums.

    Attributes:
        parts: the two, four or seven tensors of `plane_sums`; for non-finite values one, [7, C].
        samples: planes of each channel, as they were read.
        size: values of such a plane.
        floor: at which an activation is off, or None.
    """

    parts: tuple[Tensor, ...]
    samples: int
    size: int
    floor: float | None

    @property
    def channels(self) -> int:
        """How many there are: every first part has them behind."""
        return self.parts[0].shape[1]

    def to_host(self) -> Statistics:
        """Wait for the device and work the numbers out."""
        (numbers,) = finalize([self])
        return numbers


@dataclass(frozen=True, slots=True)
class PendingStatisticsPerSample:
    """`records.Statistics` of each sample alone, before the small sums.

    Attributes:
        parts: `plane_sums.read_each`'s two or four tensors.
        size: values of a plane.
        floor: at which an activation is off, or None.
        odd: of the samples with odd values, by number.
    """

    parts: tuple[Tensor, ...]
    size: int
    floor: float | None
    odd: dict[int, PendingStatistics]

    def to_host(self) -> list[Statistics]:
        """Wait for the device and work the numbers out."""
        parts = [part.cpu().numpy() for part in self.parts]
        with np.errstate(invalid="ignore", over="ignore"):  # of odd values, which are not used
            lowest, highest, means, spreads = _of_planes([parts], [self.size])
            stds = np.sqrt(spreads)
        same = (lowest == highest) & (self.size > 1)
        dead = None if self.floor is None else same & (highest == self.floor)
        none = np.zeros(lowest.shape[1], np.int64)
        found = []
        for n, (lo, hi, mean, std) in enumerate(zip(lowest, highest, means, stds, strict=True)):
            flags = same[n], None if dead is None else dead[n]
            odd = self.odd.get(n)
            of_one = Statistics(lo, hi, mean, std, none, none, none, *flags)
            found.append(of_one if odd is None else odd.to_host())
        return found


def statistics(
    maps: Tensor, floor: float | None = None, *, moments: bool = True, bounded: bool = False
) -> PendingStatistics:
    """Extremes, mean, spread, non-finite counts and flags of each channel.

    Args:
        maps: [N, C, ...] float32 or float64, not empty; read before this returns on the CPU, in
            stream order elsewhere, and never kept.
        floor: the value at which an activation is off, as the type of the activation's own
            output rounds it; gives `Statistics.dead`.
        moments: mean and spread too; they may be NaN without.
        bounded: no value can be below the floor, by the way the activation is computed.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    parts = None
    if planes.device.type == "cpu":
        if not moments:
            parts = plane_sums.read_extremes(planes, floor if bounded else None)
        elif plane_sums.is_short(planes):
            parts, planes = plane_sums.read_across(planes), planes.permute(2, 1, 0)  # [S, C, N]
        else:
            parts = plane_sums.read(planes)
    samples, _, size = planes.shape
    return PendingStatistics(parts or (_masked(planes),), samples, size, floor)


def statistics_per_sample(
    maps: Tensor, floor: float | None = None, *, moments: bool = True
) -> PendingStatisticsPerSample:
    """`statistics` of each sample alone: maps as there, on the CPU."""
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    parts, odd = plane_sums.read_each(planes, moments=moments)
    alone = {n: statistics(maps[n : n + 1], floor, moments=moments) for n in odd}
    return PendingStatisticsPerSample(parts, planes.shape[2], floor, alone)


def finalize(pending: Sequence[PendingStatistics]) -> list[Statistics]:
    """The numbers of several tensors: `PendingStatistics.to_host` of each, in their order.

    The channels of tensors that were read alike stand side by side in one array: most of the time
    that a small array takes is the call. They are no more than `MAX_PLANES` planes, or one tensor.
    """
    alike: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
    arrived = [[part.cpu().numpy() for part in one.parts] for one in pending]
    for number, parts in enumerate(arrived):
        if len(parts) == 2:
            parts[:] = parts[0].min(0, keepdims=True), parts[1].max(0, keepdims=True)
        runs = alike[min(len(parts), 4), len(parts[0])]
        if not runs or sum(arrived[n][0].size for n in [*runs[-1], number]) > MAX_PLANES:
            runs.append([])
        runs[-1].append(number)
    found: dict[int, Statistics] = {}
    for numbers in chain.from_iterable(alike.values()):
        tensors = [(pending[number], arrived[number]) for number in numbers]
        together = _counted(tensors) if len(tensors[0][1]) == 1 else _from_sums(tensors)
        found.update(zip(numbers, together, strict=True))
    return [found[number] for number in range(len(pending))]


_Arrived = tuple[PendingStatistics, list[npt.NDArray[Any]]]


def _counted(tensors: list[_Arrived]) -> Iterator[Statistics]:
    """Of tensors with odd values, which `_masked` counted."""
    for one, (rows,) in tensors:
        yield from _flagged([one], rows[:4], rows[4:].astype(np.int64))


def _from_sums(tensors: list[_Arrived]) -> Iterator[Statistics]:
    """Of tensors that `plane_sums` read, all in as many parts of the batch."""
    lo, hi, means, spreads = _of_planes(
        [parts for _, parts in tensors], [one.size for one, _ in tensors]
    )
    lowest, highest, mean = lo.min(0), hi.max(0), means.mean(0)
    variance = (np.maximum(spreads, 0.0) + np.square(means - mean)).mean(0)
    one_value = (lowest == highest) & ~np.isnan(mean)
    mean, std = np.where(one_value, lowest, mean), np.where(one_value, 0.0, np.sqrt(variance))
    numbers = np.stack([lowest, highest, mean, std])
    return _flagged([one for one, _ in tensors], numbers, np.zeros((3, len(mean)), np.int64))


def _flagged(
    tensors: list[PendingStatistics], numbers: Floats, odd: npt.NDArray[np.int64]
) -> Iterator[Statistics]:
    """Tensor by tensor, of channels side by side.

    Args:
        tensors: which, in their order.
        numbers: smallest, largest, mean and spread, f64 [4, C].
        odd: how many NaN, +Inf and -Inf, [3, C].
    """
    same = (numbers[0] == numbers[1]) & ~odd.any(0)
    start = 0
    for one in tensors:
        own = slice(start, start + one.channels)
        start = own.stop
        minimum, maximum, mean, std = numbers[:, own]
        nan, up, down = odd[:, own]
        constant = same[own] if one.samples * one.size > 1 else np.zeros_like(same[own])
        dead = None if one.floor is None else constant & (maximum == one.floor)
        yield Statistics(minimum, maximum, mean, std, nan, up, down, constant, dead)


def _of_planes(
    read: Sequence[Sequence[npt.NDArray[Any]]], sizes: Sequence[int]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Smallest, largest, mean and variance f64 [N, C] of each plane; NaN where not read.

    Args:
        read: `plane_sums`' parts of one or more tensors, whose channels then stand side by side.
        sizes: values of a plane of each.
    """
    lo, hi = (_beside([parts[n] for parts in read]) for n in (0, 1))
    if len(read[0]) == 2:
        unknown = np.full(lo.shape, np.nan)
        return lo, hi, unknown, unknown
    channels = [parts[0].shape[1] for parts in read]
    size = np.repeat(np.array(sizes, np.float64), channels)  # [C]
    means = _beside([parts[2] for parts in read]) / size
    squares = _beside([np.square(parts[3], dtype=np.float64).sum(2) for parts in read])
    spreads = squares / size - np.square(means)
    start = 0
    for parts, values, count in zip(read, sizes, channels, strict=True):
        if len(parts) > 4:
            n, c = np.divmod(parts[4], count)
            at, rest, around = (n, start + c), parts[5].astype(np.float64) / values, parts[6]
            # What was taken away is the mean as the maps' own type has it.
            means[at] = means[at].astype(parts[2].dtype).astype(np.float64) + rest
            spreads[at] = np.square(around.astype(np.float64)).sum(1) / values - np.square(rest)
        start += count
    same = lo == hi  # one value: rounding is no spread
    means[same], spreads[same] = lo[same], 0.0
    return lo, hi, means, spreads


def _beside(arrays: list[npt.NDArray[Any]]) -> Floats:
    """Arrays [N, C] next to each other, as f64."""
    return np.concatenate(arrays, axis=1, dtype=np.float64)


def _masked(planes: Tensor) -> Tensor:
    """f64 [7, C], for any values on any device: sums in float64 over the finite ones."""
    finite = torch.isfinite(planes)
    count = finite.sum((0, 2)).double()  # [C]
    lo = planes.masked_fill(~finite, torch.inf).amin((0, 2)).double()
    hi = planes.masked_fill(~finite, -torch.inf).amax((0, 2)).double()
    # Each channel near 1, so that the squares of 1e300 do not overflow nor those of 1e-200 vanish.
    exponent = torch.frexp(torch.maximum(lo.abs(), hi.abs())).exponent.clamp(-1000, 1000)
    unit = torch.exp2(-exponent.double())  # [C]
    known = planes.masked_fill(~finite, 0.0).double() * unit[None, :, None]
    mean = known.sum((0, 2)) / count
    # NaN only where a channel has no finite value, and nothing there is counted.
    centred = (known - mean[None, :, None].nan_to_num()).masked_fill_(~finite, 0.0)
    std = (centred.square().sum((0, 2)) / count).sqrt() / unit
    mean = mean / unit
    none = count == 0
    nan = torch.isnan(planes).sum((0, 2)).double()
    up, down = ((planes == end).sum((0, 2)).double() for end in (torch.inf, -torch.inf))
    return torch.stack(
        [lo.masked_fill(none, torch.nan), hi.masked_fill(none, torch.nan), mean, std, nan, up, down]
    )
