"""How much maps and weights changed since an earlier logged step.

*Maps* are compared where a probe is drawn, so that both steps show the same images. The change of
a channel is the root mean square of the difference between its drawn planes at both steps, divided
by the standard deviation of the earlier planes; over all drawn samples, and with the model in eval
mode, as for every pass of a probe. Compared are about `PIXELS` pixels per channel, spread evenly,
of what is stored: one byte per pixel, averaged over ``block`` x ``block`` values. Each value is up
to 1/255 of its plane's range too low, so a change below about 0.01 is within the rounding error;
detail finer than a block is not seen, nor are values outside of a locked scale. Reading `PIXELS`
pixels instead of all has a relative standard error of at most 5 %. Where the earlier plane is
constant, its magnitude is the unit.

*Weights* are compared at steps at which an optimizer steps, before it does, by the values that
their histograms use: up to 16,384 weights these are all, of larger weights they are at the same
positions at each step. The change of a channel of a drawn layer is |now - before| / |before|
(2-norms) over these values of that output channel in the layer's parameter ``weight``. For a
channel with n values of a larger weight the relative standard error is about 1 / sqrt(n), at most
35 %. With fewer than `LEAST`, and for weights whose first axis may not be the output channel
(transposed convolutions, other modules, shards), the change is that of the whole layer. The output
channel is taken to be the slowest axis in memory, as in contiguous and channels-last weights. The
effective weight of a parametrized layer is not known here.

A weight is *unchanged* since an earlier logged step if all of these values are the same. A step
counts only if an optimizer updated the parameter at a learning rate above 0 and at least one of the
values had to change, beyond rounding: its gradient times the rate (the update of plain SGD) and the
rate itself (about the update of Adam) both exceed `MARGIN` times the distance to the next float32.
So the following is never called unchanged: parameters without a gradient or with a gradient of zero
(unused branches, dead activations, terms of the loss with weight 0), warm-up from rate 0, and
fine-tuning at a rate so small that float32 cannot represent the update. Weights in float16 or
bfloat16 have coarser values; if those swallow each update, the weight is unchanged.

Kept between steps, per drawn channel: at most `PIXELS` bytes and 16 bytes per sample (twice the
bytes with non-finite values). For 64 drawn channels this is less than 100 KiB per layer call. And
per parameter, the values of its histogram, at most 64 KiB.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.arithmetic import ceil_div, coprime
from fmapboard.records import (
    Bytes8,
    Floats,
    LayerCall,
    LayerMeasurement,
    Parameter,
    Picture,
    Planes,
    Sample,
    StepData,
    TaggedPictures,
    TransposedShape,
)

PIXELS = 256
"""Number of pixels of a channel that are compared, over all samples; at least one of each."""
_CHECKED = 4096
"""Maximum number of values of an input image that are compared."""
LEAST = 8
"""Minimum number of sampled weights of a channel for which a change of its own is estimated."""
MARGIN = 8
"""How many float32 values an update must span at least to be called a step."""
WEIGHTS: Final = "weights"


class Change(NamedTuple):
    """How much one tensor of a layer call changed.

    Attributes:
        values: [drawn]; of weights also [1], for the whole layer. NaN if nothing finite was
            compared, and infinity if the earlier values were all 0.
        since: number of the step that was compared with.
    """

    values: Floats
    since: int


class _Pixels(NamedTuple):
    """The compared pixels of a layer's drawn planes."""

    step: int
    shown: tuple[object, ...]
    pixels: Bytes8  # [N, C, P]
    marks: Bytes8 | None
    lo: Floats  # [N, C]
    hi: Floats

    def values(self, channels: int) -> Floats:
        """f64 [channels, N, P], NaN where a value was not finite."""
        lo = self.lo[:, :channels, None]
        hi = self.hi[:, :channels, None]
        unit = (hi - lo) / 255
        values: Floats = self.pixels[:, :channels] * unit  # [N, channels, P]
        values += lo
        if self.marks is not None:
            is_marked = self.marks[:, :channels] > 0
            values[is_marked] = np.nan
        by_channel: Floats = values.swapaxes(0, 1)
        return by_channel


class Weight(NamedTuple):
    """The histogram's sample of a parameter, at the logged step that later ones are compared with.

    Attributes:
        step: number of that step.
        values: the sample, not shared with others.
        total: number of values of the whole parameter.
        since: logged step since which the values are the same.
        steps: number of steps since then that had to change one of them, without the last one.
        moves: the last step had to change one.
        first_norm: 2-norm of the values whose update was first known, before it; None so far.
    """

    step: int
    values: Floats  # [S]
    total: int
    since: int
    steps: int
    moves: bool
    first_norm: float | None = None


CHANGED: Final = ("inputs", "feature_maps", WEIGHTS)
"""What changes are known of."""
Changes = Mapping[tuple[str, str], Change]
"""Label of a layer with drawn maps and one of `CHANGED` -> its change."""
Maps = Mapping[tuple[str, str], _Pixels]
"""Label of a layer call and kind of a tensor -> what its maps are compared by."""
Weights = Mapping[str, Weight]
"""Name of a parameter -> its last sample."""


class Drawn(NamedTuple):
    """A step and what is drawn of it, for the tab's records.

    Attributes:
        data: The measurements.
        pictures: Label of a layer -> the pictures of it and of its kernels.
        unchanged_kernels: See ``drawn_kernels.KernelPictures.unchanged``.
        changes: See ``changes_of_maps``.
        followers: Label of a layer -> the activation that follows it.
        prefix: Prefix of every tag.
        slices: Label of a layer -> further depth slices of its maps.
    """

    data: StepData
    pictures: Mapping[str, Sequence[TaggedPictures]]
    unchanged_kernels: Mapping[str, Mapping[str, Any]]
    changes: Changes
    followers: Mapping[str, LayerMeasurement]
    prefix: str
    slices: Mapping[str, Sequence[Picture]] = MappingProxyType({})


def changes_of_maps(
    before: Maps, weights: Weights, data: StepData, *, has_probe: bool
) -> tuple[Maps, Changes]:
    """The maps to compare later ones with, and the changes of maps and of their layers' weights.

    Args:
        before: The maps of earlier steps; not changed.
        weights: The weights of earlier steps.
        data: The step.
        has_probe: True if the drawn maps are those of a probe.
    """
    now = dict(before)
    images = _checksum(data) if has_probe else None
    samples = {parameter.name: parameter.weight for parameter in data.parameters}
    changes = dict[tuple[str, str], Change]()
    for part in data.measured:
        planes = part.planes
        if planes is None or part.kind not in CHANGED:
            continue
        call = part.layer_call
        key = (call.label, part.kind)
        if images is not None:
            now[key] = _pixels(data.step, planes, images)
            change = _of_maps(before.get(key), now[key])
            if change is not None:
                changes[key] = change
        weight = f"{call.layer}.weight"
        if part.kind == "feature_maps" and weight in weights and weight in samples:
            change = _of_weights(weights[weight], samples[weight], call, planes)
            if change is not None:
                changes[call.label, WEIGHTS] = change
    return now, changes


def followed_weights(before: Weights, data: StepData) -> Weights:
    """The weights to compare later ones with.

    Args:
        before: Those of earlier steps; not changed.
        data: The step.
    """
    now = dict(before)
    rates = {} if data.facts is None else data.facts.rates
    # A GradScaler skips the update, which is then no reason to call weights unchanged.
    norms = [parameter.norm or 0.0 for parameter in data.parameters]
    may_be_skipped = not all(map(math.isfinite, norms))
    for parameter in data.parameters:
        sample = parameter.weight
        if sample is None:
            continue
        name = parameter.name
        rate = rates.get(name, 0.0)
        moves = not may_be_skipped and _has_to_move(parameter, rate)
        last = before.get(name)
        followed = _followed(last, sample, data.step, may_be_skipped, moves)
        first_norm = None if last is None else last.first_norm
        if first_norm is None and parameter.update is not None:
            first_norm = parameter.update.norm
        now[name] = followed._replace(first_norm=first_norm)
    return now


def _followed(
    last: Weight | None, sample: Sample, step: int, may_be_skipped: bool, moves: bool
) -> Weight:
    """A parameter's sample at a step, for later ones to compare with."""
    is_same = last is not None and _is_same(last.values, sample.values)
    if last is None or not (is_same or may_be_skipped):
        return Weight(
            step=step,
            values=sample.values.copy(),
            total=sample.total,
            since=step,
            steps=0,
            moves=moves,
        )
    return Weight(
        step=last.step if may_be_skipped else step,
        values=last.values,
        total=sample.total,
        since=last.since if is_same else step,
        steps=last.steps + int(last.moves) if is_same else 0,
        moves=moves,
    )


def _is_same(before: Floats, now: Floats) -> bool:
    """True if both have the same bytes, so that NaN is the same as NaN."""
    if before.dtype != now.dtype:
        return False
    return before.tobytes() == now.tobytes()


def _has_to_move(parameter: Parameter, rate: float) -> bool:
    """True if one step at this rate changes at least one of the values that are kept."""
    weight = parameter.weight
    gradient = parameter.gradient
    if weight is None or gradient is None:
        return False
    if any(parameter.nonfinite) or not rate > 0:
        return False
    if gradient.values.shape != weight.values.shape:
        return False
    with np.errstate(all="ignore"):
        magnitude = np.abs(weight.values.astype(np.float32))
        distance = np.spacing(magnitude) * np.float64(MARGIN)
        update = np.abs(gradient.values.astype(np.float64)) * rate
        sgd_moves = (update > distance) & np.isfinite(update)
        adam_moves = rate > distance
        has_to_move = sgd_moves & adam_moves
    return bool(has_to_move.any())


def _checksum(data: StepData) -> tuple[int, ...]:
    """Tells the probe's images apart from others, in case the user has replaced their values."""
    checksums = list[int]()
    for image in data.inputs:
        values = image.values.reshape(-1)
        stride = max(1, ceil_div(values.size, _CHECKED))
        checked = values[::stride].tobytes()
        checksums.append(zlib.crc32(checked))
    return tuple(checksums)


def _pixels(step: int, planes: Planes, images: tuple[int, ...]) -> _Pixels:
    samples, channels, height, width = planes.pixels.shape
    spacing = ceil_div(samples * height * width, PIXELS)
    stride = coprime(max(1, spacing), (height, width))

    def some_of(values: Bytes8) -> Bytes8:
        flat = values.reshape(samples, channels, -1)
        kept: Bytes8 = flat[..., ::stride].copy()
        return kept

    return _Pixels(
        step=step,
        shown=(images, samples, height, width, planes.shape),
        pixels=some_of(planes.pixels),
        marks=None if planes.marks is None else some_of(planes.marks),
        lo=planes.lo,
        hi=planes.hi,
    )


def _of_maps(before: _Pixels | None, now: _Pixels) -> Change | None:
    """The change of each drawn channel [C]; None if there is nothing to compare with."""
    if before is None or before.shown != now.shown:
        return None
    drawn = now.pixels.shape[1]
    channels = min(drawn, before.pixels.shape[1])
    changes = np.full(drawn, np.nan)
    with np.errstate(all="ignore"):
        earlier = before.values(channels)  # [channels, N, P]
        difference = now.values(channels) - earlier
        count: Floats = np.full(channels, earlier[0].size)
        if before.marks is not None or now.marks is not None:
            left_out = ~np.isfinite(difference)
            count = count - left_out.sum((1, 2))
            difference[left_out] = 0.0
            earlier[left_out] = 0.0
        mean_square = _sum_of_squares(difference) / count
        mean = earlier.sum((1, 2)) / count
        variance = _sum_of_squares(earlier) / count - mean * mean
        is_constant = variance <= 1e-12 * mean * mean
        std = np.sqrt(variance)
        unit = np.where(is_constant, np.abs(mean), std)
        root_mean_square = np.sqrt(mean_square)
        changes[:channels] = _relative(root_mean_square, unit)
    return Change(changes, before.step)


def _sum_of_squares(values: Floats) -> Floats:
    """[channels, N, P] -> [channels]."""
    sums: Floats = np.einsum("cnp,cnp->c", values, values)
    return sums


def _channel_ends(sample: Sample, call: LayerCall, planes: Planes) -> npt.NDArray[np.intp] | None:
    """Values of drawn channel c are ``sample.values[ends[c] : ends[c + 1]]``.

    None if the channels cannot be told apart, or one of them has too few values.
    """
    shape = call.kernel_shape
    if shape is None or isinstance(shape, TransposedShape):
        return None
    channels = shape[0]
    if channels != planes.channels or math.prod(shape) != sample.total:
        return None
    drawn = planes.pixels.shape[1]
    firsts = np.arange(drawn + 1) * (sample.total // channels)
    size = sample.values.size
    if size == sample.total:
        return firsts
    stride = ceil_div(sample.total, size)
    is_unique = ceil_div(sample.total, stride + 1) < size
    if not is_unique:
        return None
    ends = (firsts + stride - 1) // stride
    if np.diff(ends).min() < LEAST:
        return None
    return ends


def _of_weights(
    before: Weight, sample: Sample | None, call: LayerCall, planes: Planes
) -> Change | None:
    """The change of each channel [drawn], or of the layer [1]; None if nothing can be compared."""
    if sample is None or not sample.values.size:
        return None
    if before.total != sample.total or before.values.size != sample.values.size:
        return None
    ends = _channel_ends(sample, call, planes)
    if ends is None:
        ends = np.array([0, sample.values.size])
    *starts, stop = ends
    earlier = before.values[:stop].astype(np.float64)
    with np.errstate(all="ignore"):
        difference = sample.values[:stop] - earlier
        squared_moves = np.add.reduceat(difference * difference, starts)
        squared_lengths = np.add.reduceat(earlier * earlier, starts)
        relative = _relative(np.sqrt(squared_moves), np.sqrt(squared_lengths))
    return Change(relative, before.step)


def _relative(change: Floats, unit: Floats) -> Floats:
    """``change / unit``; no change is 0 for every unit that is a number."""
    is_known = ~np.isnan(unit)
    is_unchanged = (change == 0) & is_known
    return np.where(is_unchanged, 0.0, change / unit)
