"""Per-channel numbers of a tensor, exact over the whole batch.

On the CPU the training thread only reads the tensor: extremes, sums and norms of each plane, four
vectorised passes. What follows from these is worked out by `to_host`, in the worker thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.records import Floats, Statistics

# Beyond these, squares and sums of float32 may overflow or vanish.
_LARGE, _SMALL = 1e15, 1e-15
# Below this ratio of variance to squared mean, E[x²] - E[x]² loses digits in float32: here the
# spread has a relative error of about 1e-5.
_CANCELLATION = 0.05
# Planes of fewer values are read across samples, where there are that many samples.
_SHORT, _MANY = 64, 4
# Bytes that are read four times in a row; half of a small third-level cache.
_CACHED = 4 * 2**20
# A float32 sum of many like squares drifts; so many at most are summed before float64 takes over.
_RUN = 1024


@dataclass(frozen=True, slots=True)
class PendingStatistics:
    """`records.Statistics` before the small sums.

    Attributes:
        parts: `_read`'s two, four or seven tensors; of odd values one, f64 [7, C].
        size: values of a plane.
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
            parts = _extremes(planes, floor if bounded else None)
        elif _is_short(planes):
            parts, planes = _read_across(planes), planes.permute(2, 1, 0)  # [S, C, N]
        else:
            parts = _read(planes)
    samples, size = planes.shape[0], planes.shape[2]
    return PendingStatistics(parts or (_masked(planes),), samples, size, floor)


def _extremes(planes: Tensor, floor: float | None) -> tuple[Tensor, ...] | None:
    """Smallest and largest [R, C] over R parts of the batch; None where any is not finite.

    ``floor``: no value is below it; then most smallest values are known from the first sample.
    """
    hi = _largest(planes)
    lo = _smallest(planes) if floor is None or len(planes) == 1 else _above(planes, floor)
    return (lo, hi) if math.isfinite(hi.sum() - lo.sum()) else None


def _smallest(planes: Tensor) -> Tensor:
    """[R, C] of [N, C, S]; R is 1 where samples are better compared first."""
    return planes.amin(0).amin(1)[None] if _is_short(planes) else planes.amin(2)


def _largest(planes: Tensor) -> Tensor:
    return planes.amax(0).amax(1)[None] if _is_short(planes) else planes.amax(2)


def _is_short(planes: Tensor) -> bool:
    """Are planes so small that one by one they leave much of each vector register unused?"""
    if planes.shape[2] >= _SHORT or len(planes) < _MANY:
        return False
    return planes.is_contiguous() and planes.nbytes <= 2 * _CACHED  # squares are a copy


def _above(planes: Tensor, floor: float) -> Tensor:
    """Smallest values [1, C] where none is below the floor: a channel that touches it is done."""
    lo = planes[:1].amin(2)
    open_channels = (lo[0] != floor).nonzero()[:, 0]
    if 2 * len(open_channels) > lo.shape[1]:
        return _smallest(planes)
    if len(open_channels):
        lo[0, open_channels] = planes[:, open_channels].amin((0, 2))
    return lo


def _read(planes: Tensor) -> tuple[Tensor, ...] | None:
    """Smallest, largest and sum [N, C] and norms [N, C, runs] of each plane; None for odd values.

    Of planes that vary little around a large mean also: which, in the order of [N * C], and sum and
    norms of what lies around the mean.
    """
    read = [_read_part(part) for part in _parts(planes)]
    return _seen(planes, *(read[0] if len(read) == 1 else map(torch.cat, zip(*read, strict=True))))


def _read_across(planes: Tensor) -> tuple[Tensor, ...] | None:
    """`_read` of [S, C, N]: a pixel's values in all samples take the place of a plane."""
    norms = planes.square().sum(0).sqrt_()  # [C, S]
    read = (planes.amin(0), planes.amax(0), planes.sum(0), norms)
    lo, hi, sums, norms = (part.T.contiguous() for part in read)  # [S, C]
    return _seen(planes.permute(2, 1, 0), lo, hi, sums, norms.unsqueeze(2))


def _seen(
    planes: Tensor, lo: Tensor, hi: Tensor, sums: Tensor, norms: Tensor
) -> tuple[Tensor, ...] | None:
    """What was read of the planes, and more where it takes a closer look."""
    size = planes.shape[2]
    if _is_plain(sums, norms, size):
        return lo, hi, sums, norms
    if not _ordinary(lo.numpy(), hi.numpy(), norms.numpy()):
        return None
    near = _cancels(lo.numpy(), hi.numpy(), sums.numpy(), norms.numpy(), size)
    if not near.any():
        return lo, hi, sums, norms
    at = torch.from_numpy(np.flatnonzero(near))
    few = planes[at // planes.shape[1], at % planes.shape[1]]  # [P, S], a copy
    few -= (sums.reshape(-1)[at].double() / size).to(planes.dtype).unsqueeze(1)
    return lo, hi, sums, norms, at, few.sum(1), _norms(few.unsqueeze(0))[0]


def _parts(planes: Tensor) -> tuple[Tensor, ...]:
    """Samples that stay in the processor's cache for the second and later passes over them."""
    of_a_sample = planes[0].nbytes
    if len(planes) * of_a_sample <= 2 * _CACHED:
        return (planes,)
    return torch.split(planes, max(1, _CACHED // of_a_sample))


def _read_part(planes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return planes.amin(2), planes.amax(2), planes.sum(2), _norms(planes)


def _is_plain(sums: Tensor, norms: Tensor, size: int) -> bool:
    """Are all values finite, and do the planes of every channel vary enough around their means?

    The quick answer for nearly all layers; False where it takes a closer look.
    """
    whole = norms[..., 0] if norms.shape[2] == 1 else torch.linalg.vector_norm(norms, dim=2)
    # Var > k mean², in sums over a channel. NaN and infinities fail as well.
    room = torch.addcmul(whole * whole, sums, sums, value=-(1.0 + _CANCELLATION) / size).sum(0)
    least, most = room.aminmax()
    return float(least) > _SMALL**2 and float(most) < _LARGE**2


def _ordinary(lo: npt.NDArray[Any], hi: npt.NDArray[Any], norms: npt.NDArray[Any]) -> bool:
    """Are all values finite, and of a size whose squares are?"""
    if norms.min() > _SMALL and norms.max() < _LARGE:  # False for NaN
        return True
    largest = np.maximum(hi, -lo)
    return bool(((largest == 0.0) | ((largest > _SMALL) & (largest < _LARGE))).all())


def _cancels(
    lo: npt.NDArray[Any],
    hi: npt.NDArray[Any],
    sums: npt.NDArray[Any],
    norms: npt.NDArray[Any],
    size: int,
) -> npt.NDArray[np.bool_]:
    """Of which planes [N, C] would E[x²] - E[x]² lose digits?"""
    squares = np.square(norms).sum(2, dtype=np.float64)
    # Var < k mean², in sums: S * squares < (1 + k) * sum².
    near: npt.NDArray[np.bool_] = size * squares < (1.0 + _CANCELLATION) * np.square(
        sums, dtype=np.float64
    )
    return near & (lo != hi) if near.any() else near


def _norms(planes: Tensor) -> Tensor:
    """[N, C, runs]: 2-norms of each plane, in runs short enough for float32."""
    samples, channels, size = planes.shape
    if size <= _RUN:
        return _norm(planes.unsqueeze(2))
    least = -(-size // _RUN)
    runs = next((n for n in range(least, 2 * least) if size % n == 0), 0)
    if runs:
        return _norm(planes.reshape(samples, channels, runs, size // runs))
    whole = size // _RUN * _RUN
    cut = planes[..., :whole].reshape(samples, channels, -1, _RUN)
    return torch.cat([_norm(cut), _norm(planes[..., whole:].unsqueeze(2))], 2)


def _norm(runs: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(runs, dim=3)
    return norms


def _rows(parts: list[npt.NDArray[Any]], size: int) -> Floats:
    """f64 [7, C] from what `_read` has read."""
    lo, hi = (part.astype(np.float64) for part in parts[:2])
    if len(parts) == 2:
        unknown = np.full(lo.shape[1], np.nan)
        zeros = np.zeros((3, lo.shape[1]))
        return np.stack([lo.min(0), hi.max(0), unknown, unknown, *zeros])
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
    lowest, highest, mean = lo.min(0), hi.max(0), means.mean(0)
    variance = (np.maximum(spreads, 0.0) + np.square(means - mean)).mean(0)
    one_value = lowest == highest
    mean, std = np.where(one_value, lowest, mean), np.where(one_value, 0.0, np.sqrt(variance))
    return np.stack([lowest, highest, mean, std, *np.zeros((3, len(mean)))])


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
