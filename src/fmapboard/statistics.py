"""Per-channel numbers of a tensor, exact over the whole batch.

On the CPU the training thread only reads the tensor (`reading`). What follows from that is worked
out by `to_host`, in the worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard import reading
from fmapboard.records import Floats, Statistics


@dataclass(frozen=True, slots=True)
class PendingStatistics:
    """`records.Statistics` before the small sums.

    Attributes:
        parts: `reading`'s two, four or seven tensors; of odd values one, f64 [7, C].
        samples: planes of each channel, as they were read.
        size: values of such a plane.
        floor: at which an activation is off, or None.
    """

    parts: tuple[Tensor, ...]
    samples: int
    size: int
    floor: float | None

    def to_host(self) -> Statistics:
        """Wait for the device and work the numbers out."""
        parts = [part.cpu().numpy() for part in self.parts]
        rows = parts[0] if len(parts) == 1 else _rows(parts, self.size)
        minimum, maximum, mean, std = rows[:4]
        nan, up, down = rows[4:7].astype(np.int64)
        several = self.samples * self.size > 1
        constant = (minimum == maximum) & (nan + up + down == 0) & several
        dead = None if self.floor is None else constant & (maximum == self.floor)
        return Statistics(minimum, maximum, mean, std, nan, up, down, constant, dead)


@dataclass(frozen=True, slots=True)
class PendingEach:
    """`records.Statistics` of each sample alone, before the small sums.

    Attributes:
        parts: `reading.read_each`'s two or four tensors.
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
            lowest, highest, means, spreads = _of_planes(parts, self.size)
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
            parts = reading.read_extremes(planes, floor if bounded else None)
        elif reading.is_short(planes):
            parts, planes = reading.read_across(planes), planes.permute(2, 1, 0)  # [S, C, N]
        else:
            parts = reading.read(planes)
    samples, size = planes.shape[0], planes.shape[2]
    return PendingStatistics(parts or (_masked(planes),), samples, size, floor)


def statistics_of_each(
    maps: Tensor, floor: float | None = None, *, moments: bool = True
) -> PendingEach:
    """`statistics` of each sample alone: maps as there, on the CPU."""
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    parts, odd = reading.read_each(planes, moments=moments)
    alone = {n: statistics(maps[n : n + 1], floor, moments=moments) for n in odd}
    return PendingEach(parts, planes.shape[2], floor, alone)


def _rows(parts: list[npt.NDArray[Any]], size: int) -> Floats:
    """f64 [7, C] from what `reading` has read."""
    lo, hi, means, spreads = _of_planes(parts, size)
    lowest, highest, mean = lo.min(0), hi.max(0), means.mean(0)
    variance = (np.maximum(spreads, 0.0) + np.square(means - mean)).mean(0)
    one_value = (lowest == highest) & (len(parts) > 2)
    mean, std = np.where(one_value, lowest, mean), np.where(one_value, 0.0, np.sqrt(variance))
    return np.stack([lowest, highest, mean, std, *np.zeros((3, len(mean)))])


def _of_planes(parts: list[npt.NDArray[Any]], size: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Smallest, largest, mean and variance f64 [N, C] of each plane; NaN where not read."""
    lo, hi = (part.astype(np.float64) for part in parts[:2])
    if len(parts) == 2:
        unknown = np.full(lo.shape, np.nan)
        return lo, hi, unknown, unknown
    sums, norms = (part.astype(np.float64) for part in parts[2:4])
    means = sums / size  # [N, C]
    spreads = np.square(norms).sum(2) / size - np.square(means)
    if len(parts) > 4:
        at, rest, around = parts[4], parts[5].astype(np.float64) / size, parts[6]
        # What was taken away is the mean as the maps' own type has it.
        own = means.reshape(-1)[at].astype(parts[2].dtype).astype(np.float64)
        means.reshape(-1)[at] = own + rest
        squares = np.square(around.astype(np.float64)).sum(1) / size
        spreads.reshape(-1)[at] = squares - np.square(rest)
    same = lo == hi  # one value: rounding is no spread
    means[same], spreads[same] = lo[same], 0.0
    return lo, hi, means, spreads


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
