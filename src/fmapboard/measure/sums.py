"""Per-plane min, max, sum and norm on the CPU, a file of its own beside ``device``.

The hook makes a few vectorized passes over the tensor, in chunks that fit the CPU cache where
possible, and checks the result once. ``channel_stats`` finalizes the numbers in the worker thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure.norms import LARGE, SMALL, norms_of_runs

# Below this ratio of variance to squared mean, E[x²] - E[x]² loses digits in float32: at this
# ratio the standard deviation has a relative error of about 1e-5.
_CANCELLATION = 0.05
# Planes of fewer than _SHORT values are reduced over the samples first if there are at least _MANY
# samples.
_SHORT, _MANY = 64, 4
# Bytes per chunk that is read four times in a row: half of a small L3 cache.
_CACHED = 4 * 2**20
# A float32 sum of many similar squares drifts: sum at most this many, then switch to float64.
_RUN = 1024


def read_extremes(planes: Tensor, floor: float | None) -> tuple[Tensor, ...] | None:
    """Min and max, each [N, C] or already reduced to [1, C]; None if any value is not finite.

    Args:
        planes: [N, C, S].
        floor: A lower bound of all values, so that the first sample usually gives the min of most
            channels; None if there is no such bound.
    """
    hi = _largest(planes)
    lo = _smallest(planes) if floor is None or len(planes) == 1 else _with_floor(planes, floor)
    return (lo, hi) if math.isfinite(hi.sum() - lo.sum()) else None


def _smallest(planes: Tensor) -> Tensor:
    """Min of [N, C, S]: [1, C] if reducing over the samples first is faster, otherwise [N, C]."""
    return planes.amin(0).amin(1)[None] if is_short(planes) else planes.amin(2)


def _largest(planes: Tensor) -> Tensor:
    return planes.amax(0).amax(1)[None] if is_short(planes) else planes.amax(2)


def is_short(planes: Tensor) -> bool:
    """True if it is faster to reduce over the samples first: short planes waste vector lanes."""
    if planes.shape[2] >= _SHORT or len(planes) < _MANY:
        return False
    # `read_across` allocates the same amount of memory again for the squares.
    return planes.is_contiguous() and planes.nbytes <= 2 * _CACHED


def _with_floor(planes: Tensor, floor: float) -> Tensor:
    """As ``_smallest``, but a channel whose first sample reaches the bound is not read further."""
    lo = planes[:1].amin(2)
    open_channels = (lo[0] != floor).nonzero()[:, 0]
    if 2 * len(open_channels) > lo.shape[1]:
        return _smallest(planes)
    if len(open_channels):
        lo[0, open_channels] = planes[:, open_channels].amin((0, 2))
    return lo


def read(planes: Tensor) -> tuple[Tensor, ...] | None:
    """Min, max and sum [N, C] and norms [N, C, runs] of each plane [N, C, S].

    If the variance of some planes is small compared with their squared mean, three more tensors
    follow: the indices of these planes into [N * C], and the sums and the norms of their values
    after the mean is subtracted.

    Returns:
        Four or seven tensors; None if a value is not finite or its square might overflow or
        underflow float32.
    """
    return _with_centered_sums(planes, *_read_parts(planes))


def read_each(planes: Tensor, *, moments: bool) -> tuple[tuple[Tensor, ...], list[int]]:
    """Min and max of each plane [N, C, S] and, with ``moments``, its sum and norms.

    Unlike in ``read``, each sample is checked on its own.

    Returns:
        Min and max [N, C] and, with ``moments``, sums [N, C] and norms [N, C, runs]; and the
        indices of the samples whose numbers must not be used, because they have non-finite or
        extreme values or planes of small variance.
    """
    if not moments:
        lo, hi = planes.amin(2), planes.amax(2)
        ends = (hi.sum(1) - lo.sum(1)).tolist()
        return (lo, hi), [n for n, end in enumerate(ends) if not math.isfinite(end)]
    parts = _read_parts(planes)
    margin = _margin(*parts[2:], planes.shape[2])
    least, most = margin.amin(1).tolist(), margin.amax(1).tolist()
    is_regular = map(_is_safe_range, least, most)
    return parts, [n for n, regular in enumerate(is_regular) if not regular]


def read_across(planes: Tensor) -> tuple[Tensor, ...] | None:
    """``read`` for short planes (see ``is_short``), in transposed form.

    The results are [S, C] instead of [N, C]: each plane holds one pixel's values in all samples.
    """
    norms = planes.square().sum(0).sqrt_()  # [C, S]
    across = (planes.amin(0), planes.amax(0), planes.sum(0), norms)
    lo, hi, sums, norms = (part.T for part in across)  # [S, C]
    return _with_centered_sums(planes.permute(2, 1, 0), lo, hi, sums, norms.unsqueeze(2))


def _with_centered_sums(
    planes: Tensor, lo: Tensor, hi: Tensor, sums: Tensor, norms: Tensor
) -> tuple[Tensor, ...] | None:
    """The result of ``read``, with sums of centered values if any plane needs them."""
    size = planes.shape[2]
    if _passes_quick_check(sums, norms, size):
        return lo, hi, sums, norms
    if not _squares_are_safe(lo.numpy(), hi.numpy(), norms.numpy()):
        return None
    near = _cancels(lo.numpy(), hi.numpy(), sums.numpy(), norms.numpy(), size)
    if not near.any():
        return lo, hi, sums, norms
    at = torch.from_numpy(np.flatnonzero(near))
    centered = planes[at // planes.shape[1], at % planes.shape[1]]  # [P, S], a copy
    centered -= (sums.reshape(-1)[at].double() / size).to(planes.dtype).unsqueeze(1)
    return lo, hi, sums, norms, at, centered.sum(1), _norms(centered.unsqueeze(0))[0]


def _read_parts(planes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    seen = [_read_part(part) for part in _cache_chunks(planes)]
    lo, hi, sums, norms = seen[0] if len(seen) == 1 else map(torch.cat, zip(*seen, strict=True))
    return lo, hi, sums, norms


def _cache_chunks(planes: Tensor) -> tuple[Tensor, ...]:
    """Split the batch into chunks that stay in the CPU cache for several passes over them."""
    sample_bytes = planes[0].nbytes
    if len(planes) * sample_bytes <= 2 * _CACHED:
        return (planes,)
    return torch.split(planes, max(1, _CACHED // sample_bytes))


def _read_part(planes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return planes.amin(2), planes.amax(2), planes.sum(2), _norms(planes)


def _passes_quick_check(sums: Tensor, norms: Tensor, size: int) -> bool:
    """True if all values are finite and the planes of each channel, taken together, vary enough.

    Nearly all layers pass this check; otherwise the planes are checked one by one.
    """
    least, most = _margin(sums, norms, size).sum(0).aminmax()
    return _is_safe_range(float(least), float(most))


def _margin(sums: Tensor, norms: Tensor, size: int) -> Tensor:
    """[N, C]: S * (Var - k mean²), where k is ``_CANCELLATION``; NaN and infinity propagate."""
    whole = norms[..., 0] if norms.shape[2] == 1 else torch.linalg.vector_norm(norms, dim=2)
    return torch.addcmul(whole * whole, sums, sums, value=-(1.0 + _CANCELLATION) / size)


def _is_safe_range(least: float, most: float) -> bool:
    return least > SMALL**2 and most < LARGE**2  # False for NaN


def _squares_are_safe(lo: npt.NDArray[Any], hi: npt.NDArray[Any], norms: npt.NDArray[Any]) -> bool:
    """True if all values are finite and their squares neither overflow nor underflow."""
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
    """bool [N, C]: True for non-constant planes for which E[x²] - E[x]² would lose digits."""
    squares = np.square(norms).sum(2, dtype=np.float64)
    # Var < k mean², in terms of the sums: S * squares < (1 + k) * sum².
    near: npt.NDArray[np.bool_] = size * squares < (1.0 + _CANCELLATION) * np.square(
        sums, dtype=np.float64
    )
    return near & (lo != hi) if near.any() else near


def _norms(planes: Tensor) -> Tensor:
    """[N, C, runs]: 2-norms of runs of each plane, which are short enough for float32 sums."""
    size = planes.shape[2]
    if size <= _RUN:
        return norms_of_runs(planes, size)
    least = -(-size // _RUN)
    runs = next((n for n in range(least, 2 * least) if size % n == 0), 0)
    return norms_of_runs(planes, size // runs if runs else _RUN)
