"""Quantize maps to one byte per pixel: downscale, scale, quantize, mark non-finite values.

This uses plain NumPy, so that it runs on one core in the worker thread and leaves torch's thread
pool to training.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fmapboard.arithmetic import ceil_div
from fmapboard.records import Bytes8, Floats, Layout, PixelMark, Planes, Scale

Values = TypeVar("Values", Floats, Bytes8)


def shrink(maps: Floats, max_side: int | None) -> tuple[Floats, int]:
    """Average maps [..., H, W] over square blocks until no side exceeds ``max_side`` px.

    Blocks at the right and bottom edges may be cut off; a pixel is the mean of the values that its
    block has. If a float32 sum overflows, the means are computed in float64.

    Returns:
        The maps (the given array itself if it is small enough), and the block's side in px.
    """
    side = max(maps.shape[-2:])
    if max_side is None or side <= max_side:
        return maps, 1
    block = ceil_div(side, max_side)
    with np.errstate(over="ignore", invalid="ignore"):
        means = _means(maps, block)
        if maps.dtype == np.float32 and not np.isfinite(means).all():
            means = _means(maps.astype(np.float64), block)
    return means, block


def shrink_pixels(pixels: Bytes8, marks: Bytes8 | None, block: int) -> tuple[Bytes8, Bytes8 | None]:
    """Average pixels u8 [..., H, W] over square blocks of ``block`` px, rounding down.

    The last row and column are repeated to fill incomplete blocks. A block that contains marks
    becomes the mark with the highest code among them.
    """
    height, width = pixels.shape[-2:]
    edges = [(0, 0)] * (pixels.ndim - 2) + [(0, -height % block), (0, -width % block)]
    padded = np.pad(pixels, edges, mode="edge")
    means = _means(padded.astype(np.float64), block).astype(np.uint8)
    if marks is None:
        return means, None
    return means, _combined(marks, block, np.maximum)


def _means(maps: Floats, block: int) -> Floats:
    height, width = maps.shape[-2:]
    heights = np.minimum(height - np.arange(0, height, block), block)
    widths = np.minimum(width - np.arange(0, width, block), block)
    sums = _combined(maps, block, np.add)
    sums /= (heights[:, None] * widths).astype(maps.dtype)
    return sums


def _combined(values: Values, block: int, combine: np.ufunc) -> Values:
    """Reduce each block of values [..., H, W] to one value, in a new array."""
    rows = _along(values, block, combine, -2)
    return _along(rows, block, combine, -1)


def _along(values: Values, block: int, combine: np.ufunc, axis: int) -> Values:
    """Reduce each run of ``block`` values along an axis to one value, in a new array."""
    along = values.swapaxes(axis, -1)
    result = along[..., ::block].copy(order="K")
    for offset in range(1, min(block, along.shape[-1])):
        others = along[..., offset::block]
        inside = result[..., : others.shape[-1]]
        combine(inside, others, out=inside)
    reduced: Values = result.swapaxes(axis, -1)
    return reduced


def finite_extremes(
    values: Floats, axes: tuple[int, ...] | None = None
) -> tuple[Floats, Floats, bool]:
    """Smallest and largest finite value along the given axes.

    Args:
        values: Any floating-point array.
        axes: Axes to reduce; None reduces all.

    Returns:
        Min and max as f64 (inf and -inf if there is no finite value), and True if all values are
        finite.

    Example:
        >>> finite_extremes(np.array([1.0, np.nan, 3.0]))
        (array(1.), array(3.), False)
    """
    lo = np.asarray(values.min(axes, initial=np.inf), np.float64)
    hi = np.asarray(values.max(axes, initial=-np.inf), np.float64)
    if np.isfinite(lo).all() and np.isfinite(hi).all():
        return lo, hi, True
    finite = np.isfinite(values)
    lo = np.where(finite, values, np.inf).min(axes, initial=np.inf)
    hi = np.where(finite, values, -np.inf).max(axes, initial=-np.inf)
    return np.asarray(lo, np.float64), np.asarray(hi, np.float64), bool(finite.all())


_CACHED_BYTES = 2**18

_TILES_PER_ROW = 8
"""Maximum length of a sequence's row in tile widths; a grid of 64 tiles is as wide."""


class Averaged(NamedTuple):
    """How maps were averaged before they were copied to the host.

    Attributes:
        block: Side in px of the squares that were averaged into one pixel.
        lo: Min f64 [N, C] of each plane before it was averaged; NaN or infinite if not known.
        hi: Max, likewise.
    """

    block: int
    lo: Floats
    hi: Floats

    def extremes(self, lo: Floats | float, hi: Floats | float) -> tuple[Floats, Floats]:
        """Min and max f64 [N, C] of each plane; the given values where they are not known."""
        is_known = np.isfinite(self.lo) & np.isfinite(self.hi)
        return np.where(is_known, self.lo, lo), np.where(is_known, self.hi, hi)

    def within(self, means: Floats) -> Floats:
        """Means [N, C, H, W] without overflowed sums: a mean lies between its plane's extremes."""
        if np.isfinite(means).all():
            return means
        lo, hi = self.extremes(-np.inf, np.inf)
        lowest = lo.astype(means.dtype)[..., None, None]  # [N, C, 1, 1]
        highest = hi.astype(means.dtype)[..., None, None]
        return np.clip(means, lowest, highest)


class Quantizer:
    """Quantizes the maps of one run, in step order; used by one thread at a time.

    Not a dataclass: pending measurements hold it, and a walk of nested values would copy it, with
    the ranges that it has locked.

    Attributes:
        max_tile: Maximum side of a drawn map in px; larger maps are averaged over square blocks.
            A row of a sequence may be 8 times as long (see ``longest``). None keeps the size.
        scale: ``"channel"`` scales each channel of each sample between its own finite extremes;
            ``"layer"``, between those of all drawn channels of the sample; ``"locked"``, between
            those that the channel had at the first step at which it was not constant.
        zero_centered: Scale from -m to m, where m is the largest magnitude.
    """

    def __init__(
        self, max_tile: int | None = 64, scale: Scale = "channel", zero_centered: bool = False
    ) -> None:
        self.max_tile = max_tile
        self.scale = scale
        self.zero_centered = zero_centered
        self._locked: dict[Hashable, tuple[Floats, Floats]] = {}

    def __call__(
        self,
        key: Hashable,
        maps: Floats,
        shape: tuple[int, ...],
        channels: int,
        view: str,
        known: tuple[Floats, Floats] | None = None,
        layout: Layout = "tiles",
        averaged: Averaged | None = None,
    ) -> Planes:
        """Quantize maps [N, C, H, W], f32 or f64, which are not changed.

        Args:
            key: Identifies the tensor whose locked scale is used.
            maps: The drawn samples and channels.
            shape: Shape of the whole tensor.
            channels: Number of channels of the whole tensor.
            view: How the tensor was converted to maps.
            known: Min and max f64 [N, C] of the planes, if all values are known to be finite.
            layout: ``"rows"`` if the maps are sequences [N, C, 1, L].
            averaged: How the maps were averaged on an accelerator; None if they were not.
        """
        if averaged is None:
            drawn, block = shrink(maps, longest(self.max_tile, layout))  # [n, c, h, w]
        else:
            drawn = averaged.within(maps)
            block = averaged.block
        has_one_pixel = drawn.shape[2:] == (1, 1)
        if known is None or block > 1:
            own_lo, own_hi, is_finite = finite_extremes(drawn, (2, 3))
        else:
            own_lo, own_hi = known
            is_finite = True
        flat = own_lo == own_hi
        if block > 1:
            own_lo, own_hi, flat = _constant_planes(own_lo, own_hi, averaged or maps)
        if has_one_pixel:
            flat = np.zeros_like(flat)
        lo, hi = self._limits(own_lo, own_hi, has_one_pixel)
        if self.scale == "locked":
            lo, hi = self._lock(key, lo, hi)
        is_inside = is_finite and block == 1 and self.scale != "locked"
        return Planes(
            quantize(drawn, lo, hi, inside=is_inside),
            None if is_finite else mark(drawn),
            flat=flat,
            lo=lo,
            hi=hi,
            shape=shape,
            channels=channels,
            block=block,
            view=view,
            layout=layout,
        )

    def _limits(self, lo: Floats, hi: Floats, has_one_pixel: bool) -> tuple[Floats, Floats]:
        """The values drawn as 0 and as 255, f64 [n, c], before a scale is locked.

        Args:
            lo: Smallest finite value f64 [n, c] of each plane; infinite if there is none.
            hi: Largest finite value, likewise.
            has_one_pixel: The planes have one pixel.
        """
        if self.scale == "layer" or has_one_pixel:
            lo = np.broadcast_to(lo.min(1, keepdims=True), lo.shape)
            hi = np.broadcast_to(hi.max(1, keepdims=True), hi.shape)
        if self.zero_centered:
            hi = np.maximum(np.abs(lo), np.abs(hi))
            lo = -hi
        has_no_value = np.isinf(lo) | np.isinf(hi)  # no finite one
        return np.where(has_no_value, 0.0, lo), np.where(has_no_value, 0.0, hi)

    def _lock(self, key: Hashable, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        key = (key, lo.shape)  # a smaller last batch gets its own scale
        first_lo, first_hi = self._locked.get(key, (lo, hi))
        had_range = first_hi > first_lo
        lo = np.where(had_range, first_lo, lo)
        hi = np.where(had_range, first_hi, hi)
        self._locked[key] = (lo, hi)
        return lo, hi


def longest(max_tile: int | None, layout: Layout) -> int | None:
    """Maximum side in px of a map drawn with this option and layout.

    Example:
        >>> longest(64, "tiles"), longest(64, "rows"), longest(None, "rows")
        (64, 512, None)
    """
    if max_tile is not None and layout == "rows":
        return max_tile * _TILES_PER_ROW
    return max_tile


def used_scale(planes: Planes, scale: Scale) -> Scale:
    """The scale that was actually used: planes of one pixel have no range of their own."""
    has_one_pixel = planes.pixels.shape[2:] == (1, 1)
    return "layer" if scale == "channel" and has_one_pixel else scale


def _constant_planes(
    lo: Floats, hi: Floats, whole: Floats | Averaged
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Find constant planes among averaged ones, and correct their extremes.

    Averaging equal values may cause rounding errors. A constant map, scaled between its extremes,
    would then be drawn as black and white noise.

    Args:
        lo: Smallest finite value f64 [n, c] of the averaged planes, infinite if there is none.
        hi: Largest, likewise.
        whole: The maps before they were averaged, or what is known of them. If their extremes are
            not known, planes that are nearly constant count as constant.

    Returns:
        Min and max f64 [n, c], and bool [n, c], True where the plane was constant before averaging.
    """
    with np.errstate(invalid="ignore"):  # inf - inf, where no value is finite
        flat = (lo <= hi) & (hi - lo <= 1e-5 * np.maximum(np.abs(lo), np.abs(hi)))
    if flat.any():
        if isinstance(whole, Averaged):
            true_lo, true_hi = whole.extremes(lo, lo)
        else:
            true_lo, true_hi, _ = finite_extremes(whole, (2, 3))
        flat &= true_lo == true_hi
        lo = np.where(flat, true_lo, lo)
        hi = np.where(flat, true_hi, hi)
    return lo, hi, flat


def quantize(maps: Floats, lo: Floats, hi: Floats, *, inside: bool = False) -> Bytes8:
    """u8 [n, c, h, w]: floor(255 * (x - lo) / (hi - lo)), as make_grid and add_image compute it.

    Values outside the limits are clipped, NaN becomes 0, and a plane without a range is 0
    throughout. Very large or small values are first scaled by a power of two per plane, which is
    exact, so that 3e38 does not overflow and 1e-44 does not underflow.

    Args:
        maps: [n, c, h, w], f32 or f64.
        lo: [n, c], drawn as 0.
        hi: [n, c], drawn as 255.
        inside: All values are finite and within the limits.
    """
    magnitude = np.maximum(np.abs(lo), np.abs(hi))  # [n, c]
    exponent = np.clip(np.frexp(magnitude)[1], -126, 126)
    needs_no_scaling = bool((np.abs(exponent) < 64).all())
    unit = np.ones_like(magnitude) if needs_no_scaling else np.ldexp(1.0, -exponent)
    low = (lo * unit).astype(maps.dtype)[..., None, None]  # [n, c, 1, 1]
    high = (hi * unit).astype(maps.dtype)[..., None, None]
    span = high - low
    span[span <= 0] = np.inf
    if not needs_no_scaling:
        maps = maps * unit.astype(maps.dtype)[..., None, None]
    pixels = np.empty(maps.shape, np.uint8)
    channels = maps.shape[1]
    step = max(1, _CACHED_BYTES * channels // max(1, maps.nbytes))  # channels that fit the cache
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, channels, step):
            cached = slice(first, first + step)
            scaled = maps[:, cached] - low[:, cached]
            scaled /= span[:, cached]
            if not inside:
                np.nan_to_num(scaled, copy=False, nan=0.0)
                np.clip(scaled, 0.0, 1.0, out=scaled)
            scaled *= 255.0
            pixels[:, cached] = scaled
    return pixels


def mark(maps: Floats) -> Bytes8 | None:
    """u8 [n, c, h, w]: a ``PixelMark`` per non-finite value, else 0; None if all are finite."""
    marks = np.zeros(maps.shape, np.uint8)
    marks[np.isnan(maps)] = PixelMark.NAN
    marks[maps == np.inf] = PixelMark.POSITIVE_INFINITY
    marks[maps == -np.inf] = PixelMark.NEGATIVE_INFINITY
    return marks if marks.any() else None
