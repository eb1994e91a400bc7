"""Per-plane min, max, sum and norm, computed in the forward hook on the CPU.

A few vectorized passes over memory that is in the cache where possible, and one quick check of the
result; nothing else waits here. `channel_stats` finalizes the numbers in the worker thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure.norms import LARGE, SMALL, norms_of_runs

# Below this ratio of variance to squared mean, E[x²] - E[x]² loses digits in float32: here the
# spread has a relative error of about 1e-5.
_CANCELLATION = 0.05
# Planes of fewer values are read across samples, where there are that many samples.
_SHORT, _MANY = 64, 4
# Bytes that are read four times in a row; half of a small third-level cache.
_CACHED = 4 * 2**20
# A float32 sum of many like squares drifts; so many at most are summed before float64 takes over.
_RUN = 1024


def read_extremes(planes: Tensor, floor: float | None) -> tuple[Tensor, ...] | None:
    """Smallest and largest [R, C] over R parts of the batch; None where any is not finite.

    ``floor``: no value is below it; then most smallest values are known from the first sample.
    """
    hi = _largest(planes)
    lo = _smallest(planes) if floor is None or len(planes) == 1 else _above(planes, floor)
    return (lo, hi) if math.isfinite(hi.sum() - lo.sum()) else None


def _smallest(planes: Tensor) -> Tensor:
    """[R, C] of [N, C, S]; R is 1 where samples are better compared first."""
    return planes.amin(0).amin(1)[None] if is_short(planes) else planes.amin(2)


def _largest(planes: Tensor) -> Tensor:
    return planes.amax(0).amax(1)[None] if is_short(planes) else planes.amax(2)


def is_short(planes: Tensor) -> bool:
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


def read(planes: Tensor) -> tuple[Tensor, ...] | None:
    """Smallest, largest and sum [N, C] and norms [N, C, runs] of each plane; None for odd values.

    Of planes that vary little around a large mean also: which, in the order of [N * C], and sum and
    norms of what lies around the mean.
    """
    return _seen(planes, *_read_parts(planes))


def read_each(planes: Tensor, *, moments: bool) -> tuple[tuple[Tensor, ...], list[int]]:
    """What `read` or, without ``moments``, `read_extremes` reads of each sample alone.

    Returns:
        Smallest and largest [N, C] and, for moments, sums [N, C] and norms [N, C, runs]; numbers of
        the samples whose values are odd: nothing is known of these.
    """
    if not moments:
        lo, hi = planes.amin(2), planes.amax(2)
        ends = (hi.sum(1) - lo.sum(1)).tolist()
        return (lo, hi), [n for n, end in enumerate(ends) if not math.isfinite(end)]
    parts = _read_parts(planes)
    margin = _margin(*parts[2:], planes.shape[2])
    least, most = margin.amin(1).tolist(), margin.amax(1).tolist()
    plain = map(_is_between, least, most)
    return parts, [n for n, is_plain in enumerate(plain) if not is_plain]


def read_across(planes: Tensor) -> tuple[Tensor, ...] | None:
    """`read` of [S, C, N]: a pixel's values in all samples take the place of a plane."""
    norms = planes.square().sum(0).sqrt_()  # [C, S]
    across = (planes.amin(0), planes.amax(0), planes.sum(0), norms)
    lo, hi, sums, norms = (part.T for part in across)  # [S, C]
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


def _read_parts(planes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    seen = [_read_part(part) for part in _parts(planes)]
    lo, hi, sums, norms = seen[0] if len(seen) == 1 else map(torch.cat, zip(*seen, strict=True))
    return lo, hi, sums, norms


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
    least, most = _margin(sums, norms, size).sum(0).aminmax()
    return _is_between(float(least), float(most))


def _margin(sums: Tensor, norms: Tensor, size: int) -> Tensor:
    """[N, C]: by how much Var > k mean² holds, in sums. NaN and infinities stay what they are."""
    whole = norms[..., 0] if norms.shape[2] == 1 else torch.linalg.vector_norm(norms, dim=2)
    return torch.addcmul(whole * whole, sums, sums, value=-(1.0 + _CANCELLATION) / size)


def _is_between(least: float, most: float) -> bool:
    return least > SMALL**2 and most < LARGE**2  # False for NaN


def _ordinary(lo: npt.NDArray[Any], hi: npt.NDArray[Any], norms: npt.NDArray[Any]) -> bool:
    """Are all values finite, and of a size whose squares are?"""
    if norms.min() > SMALL and norms.max() < LARGE:  # False for NaN
        return True
    largest = np.maximum(hi, -lo)
    return bool(((largest == 0.0) | ((largest > SMALL) & (largest < LARGE))).all())


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
    size = planes.shape[2]
    if size <= _RUN:
        return norms_of_runs(planes, size)
    least = -(-size // _RUN)
    runs = next((n for n in range(least, 2 * least) if size % n == 0), 0)
    return norms_of_runs(planes, size // runs if runs else _RUN)
