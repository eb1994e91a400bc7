"""Per-channel statistics of a tensor over the whole batch, without subsampling.

The training thread only computes sums and extremes: per plane on the CPU, per channel on
accelerators (see ``device``). ``finalize`` computes the statistics from them in float64, in the
worker thread. A plane is one channel of one sample.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.measure import device as device_stats
from fmapboard.measure.norms import LARGE, SMALL, norms_of_runs
from fmapboard.records import Floats, Statistics, TensorKind

MAX_PLANES = 2**16
"""Maximum number of planes finalized at a time; bounds the temporary float64 arrays."""
_IMAGES = 8
"""Images of the batch that ``Statistics.spread`` compares, at most, where planes are long."""


# Below this ratio of variance to squared mean, E[x²] - E[x]² loses digits in float32: at this
# ratio the standard deviation has a relative error of about 1e-5.
_CANCELLATION = 0.05
# Planes of fewer than _SHORT values are reduced over the samples first if there are at least _MANY
# samples.
_SHORT = 64
_MANY = 4
# Bytes per chunk that is read four times in a row: half of a small L3 cache.
_CACHED = 4 * 2**20
# Bytes per chunk of tokens: half of a small L2 cache, whose other half holds the squares; and the
# fewest tokens in it, however many channels they have.
_CACHED_TOKENS = 2**19
_FEWEST_TOKENS = 32
# A float32 sum of many similar squares drifts: sum at most this many, then switch to float64.
_RUN = 1024


Reading = Literal["sums", "sums across images", "device", "exact"]
Key = tuple[str, TensorKind]
"""Label of a layer call, and which of its tensors."""
Unsettled = tuple[set[Key], Key]
"""Tensors on an accelerator that are to be read exactly next time, and which tensor is meant."""
_Array = npt.NDArray[Any]
_Parts = tuple[Tensor, ...]
"""What was read of one tensor (see ``PendingStatistics``)."""


class _Centered(NamedTuple):
    """Sums of P planes after each plane's mean was subtracted.

    Attributes:
        places: Indices of the planes into [N * C].
        sums: [P].
        norms: 2-norms of runs of each plane, [P, runs].
    """

    places: _Array
    sums: _Array
    norms: _Array


class _PlaneSums(NamedTuple):
    """What ``_read`` or ``_read_extremes`` read of one tensor, on the host.

    Attributes:
        lo: Min of each plane, [N, C]; [1, C] if only extremes were read.
        hi: Max, as ``lo``.
        sums: [N, C]; None if only extremes were read.
        norms: 2-norms of runs of each plane, [N, C, runs]; None like ``sums``.
        centered: More exact sums of some planes; None if no plane needs them.
    """

    lo: _Array
    hi: _Array
    sums: _Array | None = None
    norms: _Array | None = None
    centered: _Centered | None = None

    @classmethod
    def on_host(cls, parts: _Parts) -> _PlaneSums:
        """Wait for the device and copy the parts of a ``PendingStatistics``."""
        arrays = [part.cpu().numpy() for part in parts]
        if len(arrays) == 2:
            lowest = arrays[0].min(0, keepdims=True)
            highest = arrays[1].max(0, keepdims=True)
            return cls(lowest, highest)
        lo, hi, sums, norms, *rest = arrays
        centered = None
        if rest:
            centered = _Centered(*rest)
        return cls(lo, hi, sums, norms, centered)


class PendingStatistics(NamedTuple):
    """Statistics of one tensor before the per-plane sums are combined (see ``records.Statistics``).

    Attributes:
        parts: What was read, depending on ``reading``.
        samples: Number of planes per channel; after ``_read_across``, the number of pixels.
        size: Number of values per plane; after ``_read_across``, the number of samples.
        floor: Output of the activation when it is off (0 for ReLU); None for other layers.
        reading: ``"sums"``: min and max [N, C] of each plane; with moments also what ``_read``
            returns. ``"sums across images"``: the same of ``_read_across``. ``"device"``: two or
            four tensors of ``device.read``. ``"exact"``: three of ``device.read_exactly``.
        dtype: Dtype of the tensor, if it was read on an accelerator.
        unsettled: Where the tensor is added once the statistics are final, if ``device.read`` does
            not suffice for it, and removed if it does; None for neither.
    """

    parts: _Parts
    samples: int
    size: int
    floor: float | None
    reading: Reading = "sums"
    dtype: torch.dtype = torch.float32
    unsettled: Unsettled | None = None

    def has_planes(self) -> bool:
        """True if ``reduced_over_samples`` changes something."""
        if self.reading != "device" or self.samples == 1:
            return False
        return self.parts[0].dim() == 2

    def to_host(self) -> Statistics:
        """Wait for the device and finalize the statistics."""
        return finalize([self])[0]


def finalize(pending: Sequence[PendingStatistics]) -> list[Statistics]:
    """Finalize the statistics of several tensors, in the given order.

    For small arrays the overhead of each NumPy call dominates. So tensors on the CPU that were read
    in the same way are concatenated along the channel axis and finalized in batches of at most
    ``MAX_PLANES`` planes, or of one larger tensor.
    """
    groups: defaultdict[tuple[Reading, bool, int], list[list[int]]] = defaultdict(list)
    on_host: dict[int, _PlaneSums] = {}
    results: dict[int, Statistics] = {}
    for number, tensor in enumerate(pending):
        if tensor.reading in ("device", "exact"):
            results[number] = _from_device(tensor)
            continue
        read = _PlaneSums.on_host(tensor.parts)
        on_host[number] = read
        only_extremes = read.sums is None
        batches = groups[tensor.reading, only_extremes, len(read.lo)]
        if not batches:
            batches.append([])
        planes = read.lo.size
        for other in batches[-1]:
            planes += on_host[other].lo.size
        if planes > MAX_PLANES and batches[-1]:
            batches.append([])
        batches[-1].append(number)
    for numbers in chain.from_iterable(groups.values()):
        tensors = [pending[number] for number in numbers]
        sums = [on_host[number] for number in numbers]
        finalized = _from_sums(tensors, sums)
        results.update(zip(numbers, finalized, strict=True))
    return [results[number] for number in range(len(pending))]


def _from_device(tensor: PendingStatistics) -> Statistics:
    """Statistics of a tensor that was read as ``device`` reads it."""
    parts = [part.cpu() for part in tensor.parts]
    if tensor.reading == "device":
        count = tensor.samples * tensor.size
        combined = device_stats.combine(parts, count)
    else:
        combined = device_stats.combine_exactly(parts, tensor.dtype)
    if tensor.unsettled is not None:
        all_keys, key = tensor.unsettled
        if combined.settled:
            all_keys.discard(key)
        else:
            all_keys.add(key)
    spread = math.nan
    if tensor.size == 1 and tensor.samples > 1:  # one value per image and channel
        _, _, mean, std = combined.numbers
        variance = np.square(std)
        (spread,) = _relative(variance, variance + np.square(mean), np.zeros(1, np.intp))
    (found,) = _split([tensor], combined.numbers, combined.nonfinite, [spread])
    if not combined.counted:
        return replace(found, counted=False)
    return found


def _from_sums(tensors: list[PendingStatistics], read: list[_PlaneSums]) -> Iterator[Statistics]:
    """Statistics of tensors with sums of planes, all with equally many planes per channel.

    They were all read in the same way.

    Args:
        tensors: The tensors.
        read: What was read of each tensor.
    """
    sizes = [tensor.size for tensor in tensors]
    planes = _plane_moments(read, sizes)
    lowest = planes.lo.min(0)
    highest = planes.hi.max(0)
    mean = planes.mean.mean(0)
    within = np.maximum(planes.variance, 0.0)  # [N, C]
    between = np.square(planes.mean - mean)  # [N, C]
    variance = (within + between).mean(0)
    std = np.sqrt(variance)
    is_known = ~np.isnan(mean)
    one_value = (lowest == highest) & is_known
    mean[one_value] = lowest[one_value]
    std[one_value] = 0.0
    numbers = np.stack([lowest, highest, mean, std])
    nonfinite = np.zeros((3, len(mean)), np.int64)
    channels = [tensor.parts[0].shape[-1] for tensor in tensors]
    starts = np.cumsum(channels) - channels
    if read[0].sums is None:
        spreads = np.full(len(tensors), np.nan)
    elif tensors[0].reading == "sums across images":
        between_images = within.mean(0)
        spreads = _relative(between_images, variance + np.square(mean), starts)
    else:
        spreads = _spreads_of_planes(planes, within, starts)
    return _split(tensors, numbers, nonfinite, spreads)


def _spreads_of_planes(planes: _PlaneMoments, within: Floats, starts: _Array) -> Floats:
    """``Statistics.spread`` of tensors of which moments and extremes of each plane are known.

    Two planes differ in mean square by at least the squared differences of their means and of their
    standard deviations. The extremes tell apart planes that were normalized.

    Args:
        planes: The moments of N planes per channel, one of each image.
        within: Variance of each plane, [N, C].
        starts: Index of the first channel of each tensor.
    """
    if len(within) == 1:
        return np.full(len(starts), np.nan)
    first = slice(_IMAGES)
    moments = np.stack([planes.mean[first], np.sqrt(within[first])])  # [2, N, C]
    extremes = np.stack([planes.lo[first], planes.hi[first]])  # [2, N, C]
    spreads = []
    for numbers in (moments, extremes):
        between_images = numbers.var(1).sum(0)  # [C]
        power = np.square(numbers).mean(1).sum(0)  # [C]
        spreads.append(_relative(between_images, power, starts))
    larger: Floats = np.maximum(*spreads)
    return larger


def _relative(between_images: Floats, power: Floats, starts: _Array) -> Floats:
    """Root of variance over mean square of each tensor; 0 where all values are 0.

    Args:
        between_images: Variance of each channel between the images, [C].
        power: Mean square of each channel, [C].
        starts: Index of the first channel of each tensor, whose channels are concatenated.
    """
    differing, whole = np.add.reduceat([between_images, power], starts, axis=1)  # [tensors] each
    share = np.divide(differing, whole, out=np.zeros_like(whole), where=whole != 0)
    spreads: Floats = np.sqrt(share)
    return spreads


def _split(
    tensors: list[PendingStatistics],
    numbers: Floats,
    nonfinite: npt.NDArray[np.int64],
    spreads: Iterable[float],
) -> Iterator[Statistics]:
    """Split concatenated channels into one ``Statistics`` per tensor and set its flags.

    Args:
        tensors: The tensors, in the order of their channels.
        numbers: Min, max, mean and std, f64 [4, C].
        nonfinite: Counts of NaN, +Inf and -Inf, [3, C].
        spreads: ``Statistics.spread`` of each tensor.
    """
    is_finite = ~nonfinite.any(0)
    is_same = (numbers[0] == numbers[1]) & is_finite
    start = 0
    for tensor, spread in zip(tensors, spreads, strict=True):
        stop = start + tensor.parts[0].shape[-1]
        minimum, maximum, mean, std = numbers[:, start:stop]
        nan, positive_infinity, negative_infinity = nonfinite[:, start:stop]
        constant = is_same[start:stop]
        start = stop
        if tensor.samples * tensor.size == 1:
            constant = np.zeros_like(constant)
        floor = tensor.floor
        dead = None
        if floor is not None:
            dead = constant & (maximum == floor)
        yield Statistics(
            minimum=minimum,
            maximum=maximum,
            mean=mean,
            std=std,
            nan=nan,
            positive_infinity=positive_infinity,
            negative_infinity=negative_infinity,
            constant=constant,
            dead=dead,
            floor=floor,
            spread=float(spread),
        )


class _PlaneMoments(NamedTuple):
    """Min, max, mean and variance of each plane, each f64 [N, C]; NaN if not computed."""

    lo: Floats
    hi: Floats
    mean: Floats
    variance: Floats


def _plane_moments(read: list[_PlaneSums], sizes: list[int]) -> _PlaneMoments:
    """The moments of the planes of several tensors, whose channels are concatenated.

    Args:
        read: What was read of each tensor.
        sizes: Number of values per plane, per tensor.
    """
    lo = _concatenated([sums.lo for sums in read])
    hi = _concatenated([sums.hi for sums in read])
    sums = []
    squares = []
    for tensor in read:
        if tensor.sums is not None and tensor.norms is not None:
            sums.append(tensor.sums)
            squares.append(_sum_of_squares(tensor.norms))
    if not sums:
        unknown = np.full(lo.shape, np.nan)
        return _PlaneMoments(lo, hi, unknown, unknown)
    channels = [tensor.lo.shape[1] for tensor in read]
    float_sizes = np.array(sizes, np.float64)
    size = np.repeat(float_sizes, channels)  # [C]
    means = _concatenated(sums) / size
    mean_squares = _concatenated(squares) / size
    variances = mean_squares - np.square(means)
    start = 0
    for tensor, values, count in zip(read, sizes, channels, strict=True):
        centered = tensor.centered
        if centered is not None:
            sample, channel = np.divmod(centered.places, count)
            at = (sample, start + channel)
            rest = centered.sums.astype(np.float64) / values
            around = _sum_of_squares(centered.norms) / values
            # The values were centered on the mean rounded to the dtype of the maps.
            center = means[at].astype(tensor.lo.dtype)
            means[at] = center.astype(np.float64) + rest
            variances[at] = around - np.square(rest)
        start += count
    same = lo == hi  # avoid rounding errors in constant planes
    means[same] = lo[same]
    variances[same] = 0.0
    return _PlaneMoments(lo, hi, means, variances)


def _sum_of_squares(norms: _Array) -> Floats:
    """Sum of squares f64 [...] of each plane, from the norms [..., runs] of its runs."""
    squares = np.square(norms, dtype=np.float64)
    sums: Floats = squares.sum(-1)
    return sums


def _concatenated(arrays: list[_Array]) -> Floats:
    """Arrays [N, C] concatenated along the channel axis, as f64."""
    return np.concatenate(arrays, axis=1, dtype=np.float64)


def statistics(
    maps: Tensor, floor: float | None = None, *, moments: bool = True
) -> PendingStatistics:
    """Compute min, max, mean, std, non-finite counts and flags of each channel.

    Args:
        maps: [N, C, ...] float32 or float64 on the CPU, not empty; no reference to it is kept.
        floor: Output of the activation when it is off, rounded to the dtype of the activation's
            output; required for ``Statistics.dead``.
        moments: Also compute mean and std; without it they may be NaN.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    reading: Reading = "sums"
    if not moments:
        parts = _read_extremes(planes)
    elif _is_short(planes):
        parts = _read_across(planes)
        planes = planes.permute(2, 1, 0)  # [S, C, N]
        reading = "sums across images"
    elif planes.stride(1) == 1 < planes.stride(2):
        by_memory = (1, 2, 0) if planes.stride(0) < planes.stride(2) else (1, 0, 2)
        planes = planes.permute(by_memory).flatten(1).unsqueeze(0)  # [1, C, N*S]
        parts = _read_tokens(planes)
    else:
        parts = _read(planes)
    samples, _, size = planes.shape
    if parts is None:
        parts = device_stats.read_exactly(planes.double())
        return PendingStatistics(parts, samples, size, floor, reading="exact", dtype=torch.float64)
    return PendingStatistics(parts, samples, size, floor, reading=reading)


def statistics_on_device(
    maps: Tensor, floor: float | None, *, moments: bool, unsettled: Unsettled | None
) -> PendingStatistics:
    """Compute ``statistics`` on an accelerator, without waiting for it.

    Args:
        maps: [N, C, ...] of a floating-point dtype, not empty; read in stream order.
        floor: As in ``statistics``.
        moments: As in ``statistics``.
        unsettled: If the tensor is among these, or for None, it is read by ``device.read_exactly``,
            which counts non-finite values, instead of ``device.read``, which only flags them. See
            ``PendingStatistics``.
    """
    planes = maps.flatten(2) if maps.dim() != 2 else maps.unsqueeze(2)  # [N, C, S]
    samples, _, size = planes.shape
    if unsettled is None or unsettled[1] in unsettled[0]:
        parts: _Parts = device_stats.read_exactly(planes, moments=moments)
        reading: Reading = "exact"
    else:
        parts = device_stats.read(planes, moments=moments)
        reading = "device"
    return PendingStatistics(
        parts,
        samples,
        size,
        floor,
        reading=reading,
        dtype=maps.dtype,
        unsettled=unsettled,
    )


def reduced_over_samples(pending: Sequence[PendingStatistics]) -> list[PendingStatistics]:
    """Reduce what ``device.read`` read of each plane to channels, on the device.

    Each of the tensors has planes to reduce (see ``PendingStatistics.has_planes``).

    The tensors of one device, dtype and batch size share four launches: a launch takes the host
    longer than the device takes to reduce these small arrays.
    """
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, tensor in enumerate(pending):
        lows = tensor.parts[0]
        key = (lows.device, lows.dtype, len(lows))
        groups[key].append(number)
    result = list(pending)
    for numbers in groups.values():
        all_lows = [pending[number].parts[0] for number in numbers]
        all_highs = [pending[number].parts[1] for number in numbers]
        channels = [lows.shape[1] for lows in all_lows]
        lo = torch.cat(all_lows, 1).amin(0)
        hi = torch.cat(all_highs, 1).amax(0)
        own_lows = lo.split_with_sizes(channels)
        own_highs = hi.split_with_sizes(channels)
        for number, low, high in zip(numbers, own_lows, own_highs, strict=True):
            tensor = pending[number]
            moments = tensor.parts[2:]
            result[number] = tensor._replace(parts=(low, high, *moments))
    return result


def _read_extremes(planes: Tensor) -> _Parts | None:
    """Min and max of [N, C, S], each [N, C] or [1, C]; None if any value is not finite."""
    if _is_short(planes):
        lo = planes.amin(0).amin(1)[None]
        hi = planes.amax(0).amax(1)[None]
    else:
        lo = planes.amin(2)
        hi = planes.amax(2)
    spread = hi.sum() - lo.sum()  # NaN and infinity propagate
    if not math.isfinite(spread):
        return None
    return lo, hi


def _is_short(planes: Tensor) -> bool:
    """True if it is faster to reduce over the samples first: short planes waste vector lanes."""
    if planes.shape[2] >= _SHORT or len(planes) < _MANY:
        return False
    # `_read_across` allocates the same amount of memory again for the squares.
    return planes.is_contiguous() and planes.nbytes <= 2 * _CACHED


def _read(planes: Tensor) -> _Parts | None:
    """Min, max and sum [N, C] and norms [N, C, runs] of each plane [N, C, S].

    If the variance of some planes is small compared with their squared mean, three more tensors
    follow: the indices of these planes into [N * C], and the sums and the norms of their values
    after the mean is subtracted.

    Returns:
        Four or seven tensors; None if a value is not finite or its square might overflow or
        underflow float32.
    """
    chunks: Sequence[Tensor] = (planes,)
    if planes.nbytes > 2 * _CACHED:
        samples = _CACHED // planes[0].nbytes
        chunks = torch.split(planes, max(1, samples))
    lows = []
    highs = []
    sums = []
    norms = []
    for chunk in chunks:
        lows.append(chunk.amin(2))
        highs.append(chunk.amax(2))
        sums.append(chunk.sum(2))
        norms.append(_norms(chunk))
    if len(chunks) == 1:
        return _with_centered_sums(planes, lows[0], highs[0], sums[0], norms[0])
    return _with_centered_sums(
        planes, torch.cat(lows), torch.cat(highs), torch.cat(sums), torch.cat(norms)
    )


def _read_tokens(planes: Tensor) -> _Parts | None:
    """``_read`` for planes whose channels lie side by side in memory, as in [N, T, C].

    Args:
        planes: [1, C, tokens]. ``vector_norm`` along the tokens takes four times as long as a sum
            of squares.
    """
    tokens = planes[0].T  # [tokens, C]
    size = tokens.element_size()
    rows = min(max(_CACHED_TOKENS // (tokens.shape[1] * size), _FEWEST_TOKENS), _RUN)
    width = _CACHED_TOKENS // (rows * size)
    runs = torch.split(tokens, rows)
    lo, hi, sums, squares = tokens.new_empty(4, len(runs), 1, tokens.shape[1])
    for number, run in enumerate(runs):
        for first in range(0, tokens.shape[1], width):
            part = number, 0, slice(first, first + width)
            chunk = run[:, first : first + width]
            torch.amin(chunk, 0, out=lo[part])
            torch.amax(chunk, 0, out=hi[part])
            torch.sum(chunk, 0, out=sums[part])
            torch.sum(chunk.square(), 0, out=squares[part])
    norms = squares.sqrt_().movedim(0, 2)  # [1, C, runs]
    return _with_centered_sums(planes, lo.amin(0), hi.amax(0), sums.sum(0), norms)


def _read_across(planes: Tensor) -> _Parts | None:
    """``_read`` for short planes (see ``_is_short``), in transposed form.

    The results are [S, C] instead of [N, C]: each plane holds one pixel's values in all samples.
    """
    norms = planes.square().sum(0).sqrt_().T  # [S, C]
    lo = planes.amin(0).T  # [S, C]
    hi = planes.amax(0).T  # [S, C]
    sums = planes.sum(0).T  # [S, C]
    pixels = planes.permute(2, 1, 0)  # [S, C, N]
    return _with_centered_sums(pixels, lo, hi, sums, norms.unsqueeze(2))


def _with_centered_sums(
    planes: Tensor, lo: Tensor, hi: Tensor, sums: Tensor, norms: Tensor
) -> _Parts | None:
    """The result of ``_read``, with sums of centered values if any plane needs them."""
    size = planes.shape[2]
    if _passes_quick_check(sums, norms, size):
        return lo, hi, sums, norms
    lows = lo.numpy()
    highs = hi.numpy()
    host_norms = norms.numpy()
    if not _squares_are_safe(lows, highs, host_norms):
        return None
    near = _cancels(lows, highs, sums.numpy(), host_norms, size)
    places = np.flatnonzero(near)
    if not len(places):
        return lo, hi, sums, norms
    at = torch.from_numpy(places)
    channels = planes.shape[1]
    centered = planes[at // channels, at % channels]  # [P, S], a copy
    means = sums.reshape(-1)[at].double() / size  # [P]
    centered -= means.to(planes.dtype).unsqueeze(1)
    norms_of_centered = _norms(centered.unsqueeze(0))[0]
    return lo, hi, sums, norms, at, centered.sum(1), norms_of_centered


def _passes_quick_check(sums: Tensor, norms: Tensor, size: int) -> bool:
    """True if all values are finite and the planes of each channel, taken together, vary enough.

    Nearly all layers pass this check; otherwise the planes are checked one by one.
    """
    one_run = norms.shape[2] == 1
    whole = norms[..., 0] if one_run else torch.linalg.vector_norm(norms, dim=2)  # [N, C]
    squares = whole * whole
    weight = -(1.0 + _CANCELLATION) / size
    # S * (Var - k mean²) of each plane, where k is _CANCELLATION; NaN and infinity propagate.
    margin = torch.addcmul(squares, sums, sums, value=weight)
    least, most = margin.sum(0).aminmax()
    return float(least) > SMALL**2 and float(most) < LARGE**2  # False for NaN


def _squares_are_safe(lo: _Array, hi: _Array, norms: _Array) -> bool:
    """True if all values are finite and their squares neither overflow nor underflow."""
    if norms.min() > SMALL and norms.max() < LARGE:  # False for NaN
        return True
    largest = np.maximum(hi, -lo)
    is_safe = (largest > SMALL) & (largest < LARGE)
    is_safe |= largest == 0.0
    return bool(is_safe.all())


def _cancels(lo: _Array, hi: _Array, sums: _Array, norms: _Array, size: int) -> _Array:
    """bool [N, C]: True for non-constant planes for which E[x²] - E[x]² would lose digits."""
    squares = np.square(norms).sum(2, dtype=np.float64)
    squared_sums = np.square(sums, dtype=np.float64)
    # Var < k mean², in terms of the sums: S * squares < (1 + k) * sum².
    near = size * squares < (1.0 + _CANCELLATION) * squared_sums
    cancels: _Array = near & (lo != hi)
    return cancels


def _norms(planes: Tensor) -> Tensor:
    """[N, C, runs]: 2-norms of runs of each plane, which are short enough for float32 sums."""
    size = planes.shape[2]
    if size <= _RUN:
        return norms_of_runs(planes, size)
    least = ceil_div(size, _RUN)
    for runs in range(least, 2 * least):
        if size % runs == 0:
            return norms_of_runs(planes, size // runs)
    return norms_of_runs(planes, _RUN)
