"""Per-channel statistics of a tensor over the whole batch, without subsampling.

The training thread only computes sums and extremes: per plane on the CPU, per channel on
accelerators (see ``device``). ``finalize`` computes the statistics from them in float64, in the
worker thread. A plane is one channel of one sample. At the end: how far the statistics of a batch
are from those that BatchNorm layers keep.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from fmapboard.measure import device as device_stats
from fmapboard.measure.norms import LARGE, SMALL, norms_of_runs
from fmapboard.model.tensors import Packed, packed
from fmapboard.records import Floats, Statistics, TensorKind

MAX_PLANES = 2**16
"""Maximum number of planes finalized at a time; bounds the temporary float64 arrays."""


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


Reading = Literal["sums", "device", "exact"]
Key = tuple[str, TensorKind]
"""Label of a layer call, and which of its tensors."""
Unsettled = tuple[set[Key], Key]
"""Tensors on an accelerator that are to be read exactly next time, and which tensor is meant."""
_Array = npt.NDArray[Any]
_Parts = list[_Array]


class PendingStatistics(NamedTuple):
    """Statistics of one tensor before the per-plane sums are combined (see ``records.Statistics``).

    Attributes:
        parts: What was read, depending on ``reading``.
        samples: Number of planes per channel; after ``_read_across``, the number of pixels.
        size: Number of values per plane; after ``_read_across``, the number of samples.
        floor: Output of the activation when it is off (0 for ReLU); None for other layers.
        reading: ``"sums"``: min and max [N, C] of each plane; with moments also what ``_read``
            returns. ``"device"``: two or four tensors of ``device.read``. ``"exact"``: three of
            ``device.read_exactly``.
        dtype: Dtype of the tensor, if it was read on an accelerator.
        unsettled: Where the tensor is added once the statistics are final, if ``device.read`` does
            not suffice for it, and removed if it does; None for neither.
    """

    parts: tuple[Tensor, ...]
    samples: int
    size: int
    floor: float | None
    reading: Reading = "sums"
    dtype: torch.dtype = torch.float32
    unsettled: Unsettled | None = None

    def has_planes(self) -> bool:
        """True if ``reduced_over_samples`` changes something."""
        return self.reading == "device" and self.parts[0].dim() == 2 and self.samples > 1

    def to_host(self) -> Statistics:
        """Wait for the device and finalize the statistics."""
        return finalize([self])[0]


def finalize(pending: Sequence[PendingStatistics]) -> list[Statistics]:
    """Finalize the statistics of several tensors, in the given order.

    For small arrays the overhead of each NumPy call dominates. So tensors on the CPU that were read
    in the same way are concatenated along the channel axis and finalized in batches of at most
    ``MAX_PLANES`` planes, or of one larger tensor.
    """
    groups: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
    on_host: dict[int, _Parts] = {}
    results: dict[int, Statistics] = {}
    for number, one in enumerate(pending):
        if one.reading != "sums":
            results[number] = _from_device(one)
            continue
        parts = on_host[number] = [part.cpu().numpy() for part in one.parts]
        if len(parts) == 2:
            parts[:] = parts[0].min(0, keepdims=True), parts[1].max(0, keepdims=True)
        batches = groups[min(len(parts), 4), len(parts[0])]
        if not batches or sum(on_host[n][0].size for n in [*batches[-1], number]) > MAX_PLANES:
            batches.append([])
        batches[-1].append(number)
    for numbers in chain.from_iterable(groups.values()):
        finalized = _from_sums([pending[n] for n in numbers], [on_host[n] for n in numbers])
        results.update(zip(numbers, finalized, strict=True))
    return [results[number] for number in range(len(pending))]


def _from_device(one: PendingStatistics) -> Statistics:
    """Statistics of a tensor that was read as ``device`` reads it."""
    parts = [part.cpu() for part in one.parts]
    if one.reading == "device":
        combined = device_stats.combine(parts, one.samples * one.size)
    else:
        combined = device_stats.combine_exactly(parts, one.dtype)
    if one.unsettled is not None:
        all_keys, key = one.unsettled
        change = all_keys.discard if combined.settled else all_keys.add
        change(key)
    (found,) = _split([one], combined.numbers, combined.nonfinite)
    return found if combined.counted else replace(found, counted=False)


def _from_sums(tensors: list[PendingStatistics], read: list[_Parts]) -> Iterator[Statistics]:
    """Statistics of tensors with sums of planes, all with equally many planes per channel.

    Args:
        tensors: The tensors.
        read: The parts of each tensor.
    """
    lo, hi, means, variances = _plane_moments(read, [one.size for one in tensors])
    lowest, highest, mean = lo.min(0), hi.max(0), means.mean(0)
    variance = (np.maximum(variances, 0.0) + np.square(means - mean)).mean(0)
    one_value = (lowest == highest) & ~np.isnan(mean)
    mean, std = np.where(one_value, lowest, mean), np.where(one_value, 0.0, np.sqrt(variance))
    numbers = np.stack([lowest, highest, mean, std])
    return _split(tensors, numbers, np.zeros((3, len(mean)), np.int64))


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
        own = slice(start, start + one.parts[0].shape[-1])
        start = own.stop
        minimum, maximum, mean, std = numbers[:, own]
        nan, up, down = nonfinite[:, own]
        constant = same[own] if one.samples * one.size > 1 else np.zeros_like(same[own])
        dead = None if one.floor is None else constant & (maximum == one.floor)
        yield Statistics(
            minimum=minimum,
            maximum=maximum,
            mean=mean,
            std=std,
            nan=nan,
            positive_infinity=up,
            negative_infinity=down,
            constant=constant,
            dead=dead,
            floor=one.floor,
        )


def _plane_moments(read: list[_Parts], sizes: list[int]) -> tuple[Floats, Floats, Floats, Floats]:
    """Min, max, mean and variance of each plane, each f64 [N, C]; NaN where they were not computed.

    Args:
        read: The parts of each tensor; channels are concatenated.
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
    if not moments:
        parts = _read_extremes(planes)
    elif _is_short(planes):
        parts, planes = _read_across(planes), planes.permute(2, 1, 0)  # [S, C, N]
    else:
        parts = _read(planes)
    samples, _, size = planes.shape
    if parts is None:
        parts = device_stats.read_exactly(planes.double())
        return PendingStatistics(parts, samples, size, floor, "exact", torch.float64)
    return PendingStatistics(parts, samples, size, floor)


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
        parts: tuple[Tensor, ...] = device_stats.read_exactly(planes, moments=moments)
        reading: Reading = "exact"
    else:
        parts = device_stats.read(planes, moments=moments)
        reading = "device"
    return PendingStatistics(parts, samples, size, floor, reading, maps.dtype, unsettled)


def reduced_over_samples(pending: Sequence[PendingStatistics]) -> list[PendingStatistics]:
    """Reduce what ``device.read`` read of each plane to channels, on the device.

    The tensors of one device, dtype and batch size share four launches: a launch takes the host
    longer than the device takes to reduce these small arrays.
    """
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, one in enumerate(pending):
        lows = one.parts[0]
        if one.reading == "device" and lows.dim() == 2 and len(lows) > 1:
            groups[lows.device, lows.dtype, len(lows)].append(number)
    result = list(pending)
    for numbers in groups.values():
        channels = [pending[number].parts[0].shape[1] for number in numbers]
        lo = torch.cat([pending[number].parts[0] for number in numbers], 1).amin(0)
        hi = torch.cat([pending[number].parts[1] for number in numbers], 1).amax(0)
        own_lows = lo.split_with_sizes(channels)
        own_highs = hi.split_with_sizes(channels)
        for number, low, high in zip(numbers, own_lows, own_highs, strict=True):
            one = pending[number]
            result[number] = one._replace(parts=(low, high, *one.parts[2:]))
    return result


def _read_extremes(planes: Tensor) -> tuple[Tensor, ...] | None:
    """Min and max of [N, C, S], each [N, C] or [1, C]; None if any value is not finite."""
    if _is_short(planes):
        lo = planes.amin(0).amin(1)[None]
        hi = planes.amax(0).amax(1)[None]
    else:
        lo = planes.amin(2)
        hi = planes.amax(2)
    return (lo, hi) if math.isfinite(hi.sum() - lo.sum()) else None


def _is_short(planes: Tensor) -> bool:
    """True if it is faster to reduce over the samples first: short planes waste vector lanes."""
    if planes.shape[2] >= _SHORT or len(planes) < _MANY:
        return False
    # `_read_across` allocates the same amount of memory again for the squares.
    return planes.is_contiguous() and planes.nbytes <= 2 * _CACHED


def _read(planes: Tensor) -> tuple[Tensor, ...] | None:
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
        chunks = torch.split(planes, max(1, _CACHED // planes[0].nbytes))
    seen = [(part.amin(2), part.amax(2), part.sum(2), _norms(part)) for part in chunks]
    lo, hi, sums, norms = seen[0] if len(seen) == 1 else map(torch.cat, zip(*seen, strict=True))
    return _with_centered_sums(planes, lo, hi, sums, norms)


def _read_across(planes: Tensor) -> tuple[Tensor, ...] | None:
    """``_read`` for short planes (see ``_is_short``), in transposed form.

    The results are [S, C] instead of [N, C]: each plane holds one pixel's values in all samples.
    """
    norms = planes.square().sum(0).sqrt_()  # [C, S]
    across = (planes.amin(0), planes.amax(0), planes.sum(0), norms)
    lo, hi, sums, norms = (part.T for part in across)  # [S, C]
    return _with_centered_sums(planes.permute(2, 1, 0), lo, hi, sums, norms.unsqueeze(2))


def _with_centered_sums(
    planes: Tensor, lo: Tensor, hi: Tensor, sums: Tensor, norms: Tensor
) -> tuple[Tensor, ...] | None:
    """The result of ``_read``, with sums of centered values if any plane needs them."""
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


def _passes_quick_check(sums: Tensor, norms: Tensor, size: int) -> bool:
    """True if all values are finite and the planes of each channel, taken together, vary enough.

    Nearly all layers pass this check; otherwise the planes are checked one by one.
    """
    whole = norms[..., 0] if norms.shape[2] == 1 else torch.linalg.vector_norm(norms, dim=2)
    # S * (Var - k mean²) of each plane, where k is _CANCELLATION; NaN and infinity propagate.
    margin = torch.addcmul(whole * whole, sums, sums, value=-(1.0 + _CANCELLATION) / size)
    least, most = margin.sum(0).aminmax()
    return float(least) > SMALL**2 and float(most) < LARGE**2  # False for NaN


def _squares_are_safe(lo: _Array, hi: _Array, norms: _Array) -> bool:
    """True if all values are finite and their squares neither overflow nor underflow."""
    if norms.min() > SMALL and norms.max() < LARGE:  # False for NaN
        return True
    largest = np.maximum(hi, -lo)
    return bool(((largest == 0.0) | ((largest > SMALL) & (largest < LARGE))).all())


def _cancels(lo: _Array, hi: _Array, sums: _Array, norms: _Array, size: int) -> _Array:
    """bool [N, C]: True for non-constant planes for which E[x²] - E[x]² would lose digits."""
    squares = np.square(norms).sum(2, dtype=np.float64)
    # Var < k mean², in terms of the sums: S * squares < (1 + k) * sum².
    near: _Array = size * squares < (1.0 + _CANCELLATION) * np.square(sums, dtype=np.float64)
    return near & (lo != hi) if near.any() else near


def _norms(planes: Tensor) -> Tensor:
    """[N, C, runs]: 2-norms of runs of each plane, which are short enough for float32 sums."""
    size = planes.shape[2]
    if size <= _RUN:
        return norms_of_runs(planes, size)
    least = -(-size // _RUN)
    runs = next((n for n in range(least, 2 * least) if size % n == 0), 0)
    return norms_of_runs(planes, size // runs if runs else _RUN)


# How far the statistics of a batch are from those that BatchNorm keeps for evaluation.
#
# A BatchNorm layer in train mode stores no statistics of the batch, but mixes the variance into its
# running variance. The batch's variance follows from the running variance before and after, so no
# feature map is read.

_MOST_ROUNDING = 0.05
"""A gap is not reported if rounding of the running variance could change it by more than this."""
_LEAST_BATCHES = 50
"""Batches after which running statistics should no longer be the initial ones."""
_SMALL_MOMENTUM = 2e-4
"""Momentum up to which a layer counts as hardly updated; 3e-4 is that of MNASNet."""
_INITIAL = 0.9
"""Share of the initial value in a running variance from which that is mostly the initial one."""
_SHARE_ROUNDING = 1e-3


class BatchNormLayer(NamedTuple):
    """What is known about a BatchNorm layer on the host.

    Attributes:
        name: its name in the model.
        momentum: the weight of a batch in the running variance; None for a cumulative average.
        eps: added to variances.
    """

    name: str
    momentum: float | None
    eps: float


def running_state(modules: Sequence[_BatchNorm]) -> Packed:
    """Copy what layers keep: the running variance [C] of each, then the number of batches, i64 [1].

    Args:
        modules: layers that keep statistics.
    """
    kept = [(m.running_var, m.num_batches_tracked) for m in modules]
    variances = [variance.detach() for variance, _ in kept]  # type: ignore[union-attr]  # kept
    counts = [count.detach().view(1) for _, count in kept]  # type: ignore[union-attr]  # kept
    return packed(variances + counts)


class PendingGaps(NamedTuple):
    """The running statistics of BatchNorm layers before and after a forward pass.

    Attributes:
        layers: the layers.
        before: their ``running_state`` before the pass.
        after: that after it.
    """

    layers: tuple[BatchNormLayer, ...]
    before: Packed
    after: Packed

    def to_host(self) -> tuple[dict[str, float], tuple[str, ...]]:
        """Wait for the device.

        Returns:
            Layer -> median over channels of |log(batch / running variance)|. ``eps`` is added to
            both variances; the running one is that before the pass. If a layer ran more than once,
            its batches are averaged. A layer is left out if it did not update its statistics, if
            they are not finite, or if rounding hides the batch. Then the layers whose running
            variance is still mostly the initial one.
        """
        old, new, many = self.before.split(), self.after.split(), len(self.layers)
        gaps, initial = {}, []
        for n, layer in enumerate(self.layers):
            counts = int(old[many + n]), int(new[many + n])
            before, after = old[n].cpu().double(), new[n].cpu().double()
            gap = _gap(layer, before, after, counts, torch.finfo(old[n].dtype).eps)
            if gap is not None:
                gaps[layer.name] = gap
            if _is_initial(layer, after, counts):
                initial.append(layer.name)
        return gaps, tuple(initial)


def _is_initial(layer: BatchNormLayer, variance: Tensor, counts: tuple[int, int]) -> bool:
    """True if a layer's running variance is still mostly the initial one.

    After n batches, (1 - momentum)^n of it is the initial value, 1. Layers count with a momentum of
    at most 2e-4 whose share is at least 0.9 after 50 batches or more. No running variance that
    started at 1 can be below the share; those of a loaded checkpoint are.
    """
    first, last = counts
    if layer.momentum is None or layer.momentum > _SMALL_MOMENTUM:
        return False
    if not first < last or last < _LEAST_BATCHES:
        return False
    share = (1 - layer.momentum) ** last
    return share >= _INITIAL and bool((variance >= share - _SHARE_ROUNDING).all())


def _gap(
    layer: BatchNormLayer, old: Tensor, new: Tensor, counts: tuple[int, int], rounding: float
) -> float | None:
    first, last = counts
    if last <= first:
        return None
    momentum = layer.momentum
    kept = first / last if momentum is None else (1 - momentum) ** (last - first)
    if not kept < 1:
        return None
    batch = (new - kept * old) / (1 - kept)
    error = 2 * rounding * torch.maximum(old, new) / (1 - kept)
    running = old + layer.eps
    if not torch.isfinite(batch).all() or bool((batch < -error).any()):
        return None  # another rule than BatchNorm's, or the layer has seen a non-finite value
    seen = batch.clamp(min=0) + layer.eps
    if bool((error / torch.minimum(running, seen)).median() > _MOST_ROUNDING):
        return None
    # numpy's logarithm, because MKL's would start a team of OpenMP threads (see capture.sending).
    logarithms = torch.from_numpy(np.log((seen / running).numpy()))
    return float(logarithms.abs().median())
