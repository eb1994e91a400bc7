"""How much each channel changed since an earlier logged step: in its maps, and in its weights.

*Maps* are compared where a probe is drawn, so that both steps show the same images. The change of
a channel is the root mean square of the difference between its drawn planes at both steps, divided
by the standard deviation of the earlier planes; over all drawn samples, and with the model in eval
mode, as for every pass of a probe. Compared are about `PIXELS` pixels per channel, spread evenly,
of what is stored: one byte per pixel, averaged over ``block`` x ``block`` values. Each value is up
to 1/255 of its plane's range too low, so a change below about 0.01 is within the rounding error;
detail finer than a block is not seen, nor are values outside of a locked scale. Reading `PIXELS`
pixels instead of all has a relative standard error of at most 5 %. Where the earlier plane is
constant, its magnitude is the unit.

*Weights* are compared at steps at which an optimizer steps, before it does. The change of a channel
is |now - before| / |before| (2-norms) over the weights of that output channel in the layer's
parameter ``weight``. It is exact up to 16,384 weights per layer; of larger layers, the values that
the histograms use are compared, which are at the same positions at each step. For a channel with n
such values the relative standard error is about 1 / sqrt(n), at most 35 %. With fewer than `LEAST`,
and for weights whose first axis may not be the output channel (transposed convolutions, other
modules, shards), the change is that of the whole layer. The output channel is taken to be the
slowest axis in memory, as in contiguous and channels-last weights. The effective weight of a
parametrized layer is not known here.

Kept between steps, per drawn channel: at most `PIXELS` bytes and 16 bytes per sample (twice the
bytes with non-finite values), and 4 bytes per compared weight, at most 64 KiB per layer. For 64
drawn channels this is less than 100 KiB per layer call, and as much again for what ``undo`` would
restore.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.records import (
    Bytes8,
    Floats,
    LayerCall,
    Parameter,
    Planes,
    Sample,
    StepData,
    TransposedShape,
)

PIXELS = 256
"""Number of pixels of a channel that are compared, over all samples; at least one of each."""
_CHECKED = 4096
"""Maximum number of values of an input image that are compared."""
LEAST = 8
"""Minimum number of sampled weights of a channel for which a change of its own is estimated."""
WEIGHTS: Final = "weights"
_ROLES = ("feature_maps", "inputs")


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one layer call.

    Attributes:
        arrays: ``feature_maps`` and ``inputs`` -> [drawn], of maps; ``weights`` -> [drawn], or [1]
            for the whole layer. NaN if nothing finite was compared, and infinity if the earlier
            values were all 0.
        since: The same keys -> number of the step that was compared with.
    """

    arrays: dict[str, Floats] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, values: Floats | None, step: int) -> None:
        """Add the changes of one tensor, if they are known."""
        if values is not None:
            self.arrays[name], self.since[name] = values, step


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
        lo, hi = self.lo[:, :channels, None], self.hi[:, :channels, None]
        values: Floats = self.pixels[:, :channels] * ((hi - lo) / 255)
        values += lo
        if self.marks is not None:
            values[self.marks[:, :channels] > 0] = np.nan
        by_channel: Floats = values.swapaxes(0, 1)
        return by_channel


class _Weights(NamedTuple):
    """The compared values of a layer's weight."""

    step: int
    total: int
    values: Floats  # [S]
    starts: npt.NDArray[np.intp]  # index of each channel's first value; [1] for the whole layer


_Key = tuple[str, str]
_Kept = Mapping[_Key, "_Pixels | _Weights"]


class ChannelChanges:
    """Compares each step with the previous one that has the layer; used by one thread at a time.

    Args:
        has_probe: True if the drawn maps are those of a probe.
    """

    def __init__(self, *, has_probe: bool) -> None:
        self._has_probe = has_probe
        self._kept: _Kept = {}
        self._before: _Kept = {}

    def __call__(self, data: StepData) -> dict[str, Changes]:
        """Label of a layer call with drawn feature maps -> its changes."""
        self._before, fresh = self._kept, dict(self._kept)
        images = _checksum(data) if self._has_probe else None
        parameters = {parameter.name: parameter for parameter in data.parameters}
        # A GradScaler skips the update, which is then no reason to call weights unchanged.
        may_be_skipped = any(not math.isfinite(p.norm or 0.0) for p in data.parameters)
        changes: dict[str, Changes] = {}
        for part in data.measured:
            call, planes = part.layer_call, part.planes
            if planes is None or part.kind not in _ROLES:
                continue
            found = changes.setdefault(call.label, Changes())
            if images is not None:
                now = _pixels(data.step, planes, images)
                drawn: _Key = (part.kind, call.label)
                found.add(part.kind, *_of_maps(self._kept.get(drawn), now))
                fresh[drawn] = now
            if part.kind == "feature_maps":
                weights = _weights(data.step, parameters, call, planes)
                if weights is not None:
                    own: _Key = (WEIGHTS, call.label)
                    before = self._kept.get(own)
                    found.add(WEIGHTS, *_of_weights(before, weights))
                    if before is None or not may_be_skipped:
                        fresh[own] = weights
        self._kept = fresh
        return changes

    def undo(self) -> None:
        """Discard the last step, which could not be stored."""
        self._kept = self._before


def _checksum(data: StepData) -> tuple[int, ...]:
    """Tells the probe's images apart from others, in case the user has replaced their values."""
    flat = (image.values.reshape(-1) for image in data.inputs)
    return tuple(zlib.crc32(v[:: -(-v.size // _CHECKED) or 1].tobytes()) for v in flat)


def _pixels(step: int, planes: Planes, images: tuple[int, ...]) -> _Pixels:
    samples, channels, height, width = planes.pixels.shape
    stride = max(1, -(-samples * height * width // PIXELS))
    # Sharing no factor with a side, the stride covers all rows and columns.
    while stride > 1 and math.gcd(stride, height * width) > 1:
        stride += 1

    def some(pixels: Bytes8) -> Bytes8:
        kept: Bytes8 = pixels.reshape(samples, channels, -1)[:, :, ::stride].copy()
        return kept

    return _Pixels(
        step,
        (images, samples, height, width, planes.shape),
        some(planes.pixels),
        None if planes.marks is None else some(planes.marks),
        planes.lo,
        planes.hi,
    )


def _of_maps(before: _Pixels | _Weights | None, now: _Pixels) -> tuple[Floats | None, int]:
    """The change of each drawn channel [C], and the step compared with."""
    if not isinstance(before, _Pixels) or before.shown != now.shown:
        return None, 0
    drawn = now.pixels.shape[1]
    channels = min(drawn, before.pixels.shape[1])
    changes = np.full(drawn, np.nan)
    with np.errstate(all="ignore"):
        earlier, later = before.values(channels), now.values(channels)  # [channels, N, P]
        later -= earlier
        count: Floats = np.full(channels, earlier[0].size)
        if before.marks is not None or now.marks is not None:
            left_out = ~np.isfinite(later)
            count = count - left_out.sum((1, 2))
            later[left_out] = earlier[left_out] = 0.0
        moved, mean = _sum_of_squares(later) / count, earlier.sum((1, 2)) / count
        variance = _sum_of_squares(earlier) / count - mean * mean
        constant = variance <= 1e-12 * mean * mean
        unit = np.where(constant, np.abs(mean), np.sqrt(variance))
        changes[:channels] = _relative(np.sqrt(moved), unit)
    return changes, before.step


def _sum_of_squares(values: Floats) -> Floats:
    """[channels, N, P] -> [channels]."""
    sums: Floats = np.einsum("cnp,cnp->c", values, values)
    return sums


def _weights(
    step: int, parameters: Mapping[str, Parameter], call: LayerCall, planes: Planes
) -> _Weights | None:
    parameter = parameters.get(f"{call.layer}.weight")
    sample = None if parameter is None else parameter.weight
    if sample is None or not sample.values.size:
        return None
    ends = _channel_ends(sample, call, planes)
    if ends is None:
        ends = np.array([0, sample.values.size])
    return _Weights(step, sample.total, sample.values[: ends[-1]].copy(), ends[:-1])


def _channel_ends(sample: Sample, call: LayerCall, planes: Planes) -> npt.NDArray[np.intp] | None:
    """Values of drawn channel c are ``sample.values[ends[c] : ends[c + 1]]``.

    None if the channels cannot be told apart, or one of them has too few values.
    """
    shape, size = call.kernel_shape, sample.values.size
    if shape is None or isinstance(shape, TransposedShape) or shape[0] != planes.channels:
        return None
    stride = -(-sample.total // size)
    is_unique = stride == 1 or -(-sample.total // (stride + 1)) < size
    if math.prod(shape) != sample.total or not is_unique:
        return None
    firsts = np.arange(planes.pixels.shape[1] + 1) * (sample.total // shape[0])
    ends = -(-firsts // stride)
    return ends if stride == 1 or np.diff(ends).min() >= LEAST else None


def _of_weights(before: _Pixels | _Weights | None, now: _Weights) -> tuple[Floats | None, int]:
    """The change of each channel [drawn], or of the layer [1], and the step compared with."""
    if not isinstance(before, _Weights) or before.total != now.total:
        return None, 0
    earlier, later = before.values[: now.values.size].astype(np.float64), now.values
    if earlier.size < later.size:
        return None, 0
    with np.errstate(all="ignore"):
        moved, length = (
            np.sqrt(np.add.reduceat(values * values, now.starts))
            for values in (later - earlier, earlier)
        )
        return _relative(moved, length), before.step


def _relative(change: Floats, unit: Floats) -> Floats:
    """``change / unit``; no change is 0 for every unit that is a number."""
    relative: Floats = np.where((change == 0) & ~np.isnan(unit), 0.0, change / unit)
    return relative
