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
Flags = npt.NDArray[np.bool_]
Limits = tuple[Floats, Floats]
"""Smallest and largest values."""


def shrink(maps: Floats, max_side: int | None) -> tuple[Floats, int]:
    """Average maps [..., H, W] over square blocks until no side exceeds ``max_side`` px.

    Blocks at the right and bottom edges may be cut off; a pixel is the mean of the values that its
    block has. If a float32 sum overflows, the means are computed in float64.

    Returns:
        The maps (the given array itself if it is small enough), and the block's side in px.
    """
    height, width = maps.shape[-2:]
    side = max(height, width)
    if max_side is None or side <= max_side:
        return maps, 1
    block = ceil_div(side, max_side)
    with np.errstate(over="ignore", invalid="ignore"):
        means = _means(maps, block)
        has_overflowed = not np.isfinite(means).all()
        if has_overflowed and maps.dtype == np.float32:
            wide = maps.astype(np.float64)
            means = _means(wide, block)
    return means, block


def shrink_pixels(pixels: Bytes8, marks: Bytes8 | None, block: int) -> tuple[Bytes8, Bytes8 | None]:
    """Average pixels u8 [..., H, W] over square blocks of ``block`` px, rounding down.

    The last row and column are repeated to fill incomplete blocks. A block that contains marks
    becomes the mark with the highest code among them.
    """
    *outer, height, width = pixels.shape
    below = -height % block
    right = -width % block
    edges = [(0, 0) for _ in outer]
    edges += [(0, below), (0, right)]
    padded = np.pad(pixels, edges, mode="edge")
    means = _means(padded.astype(np.float64), block)
    smaller = means.astype(np.uint8)
    if marks is None:
        return smaller, None
    return smaller, _combined(marks, block, np.maximum)


def _means(maps: Floats, block: int) -> Floats:
    height, width = maps.shape[-2:]
    rows_left = height - np.arange(0, height, block)
    columns_left = width - np.arange(0, width, block)
    heights = np.minimum(rows_left, block)
    widths = np.minimum(columns_left, block)
    counts = np.outer(heights, widths)  # values per block
    sums = _combined(maps, block, np.add)
    sums /= counts.astype(maps.dtype)
    return sums


def _combined(values: Values, block: int, combine: np.ufunc) -> Values:
    """Reduce each block of values [..., H, W] to one value, in a new array."""
    rows = _along(values, block, combine, -2)
    return _along(rows, block, combine, -1)


def _along(values: Values, block: int, combine: np.ufunc, axis: int) -> Values:
    """Reduce each run of ``block`` values along an axis to one value, in a new array."""
    along = values.swapaxes(axis, -1)
    result = along[..., ::block].copy(order="K")
    longest_run = min(block, along.shape[-1])
    for offset in range(1, longest_run):
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
    lo, hi = _extremes(values, values, axes)
    has_finite_extremes = np.isfinite(lo) & np.isfinite(hi)
    if has_finite_extremes.all():
        return lo, hi, True
    finite = np.isfinite(values)
    or_infinity = np.where(finite, values, np.inf)
    or_minus_infinity = np.where(finite, values, -np.inf)
    lo, hi = _extremes(or_infinity, or_minus_infinity, axes)
    return lo, hi, bool(finite.all())


def _extremes(for_min: Floats, for_max: Floats, axes: tuple[int, ...] | None) -> Limits:
    lo = for_min.min(axes, initial=np.inf)
    hi = for_max.max(axes, initial=-np.inf)
    return np.asarray(lo, np.float64), np.asarray(hi, np.float64)


_CACHED_BYTES = 2**18
_PLANE = (2, 3)
"""Axes of one plane in [N, C, H, W]."""

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

    def extremes(self, lo: Floats | float, hi: Floats | float) -> Limits:
        """Min and max f64 [N, C] of each plane; the given values where they are not known."""
        is_known = np.isfinite(self.lo) & np.isfinite(self.hi)
        least = np.where(is_known, self.lo, lo)
        most = np.where(is_known, self.hi, hi)
        return least, most

    def within(self, means: Floats) -> Floats:
        """Means [N, C, H, W] without overflowed sums: a mean lies between its plane's extremes."""
        if np.isfinite(means).all():
            return means
        lo, hi = self.extremes(-np.inf, np.inf)
        lowest = _per_plane(lo, means.dtype)
        highest = _per_plane(hi, means.dtype)
        return np.clip(means, lowest, highest)


def _per_plane(values: Floats, dtype: npt.DTypeLike) -> Floats:
    """Values [n, c] in a dtype as [n, c, 1, 1], to be combined with planes."""
    return values.astype(dtype)[..., None, None]


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
        self._locked: dict[Hashable, Limits] = {}

    def __call__(
        self,
        key: Hashable,
        maps: Floats,
        shape: tuple[int, ...],
        channels: int,
        view: str,
        known: Limits | None = None,
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
        drawn, block = self._shrunk(maps, layout, averaged)  # [n, c, h, w]
        if known is None or block > 1:
            own_lo, own_hi, is_finite = finite_extremes(drawn, _PLANE)
        else:
            own_lo, own_hi = known
            is_finite = True
        flat = own_lo == own_hi
        if block > 1:
            own_lo, own_hi, flat = _constant_planes(own_lo, own_hi, averaged or maps)
        has_one_pixel = _have_one_pixel(drawn)
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

    def _shrunk(
        self, maps: Floats, layout: Layout, averaged: Averaged | None
    ) -> tuple[Floats, int]:
        """The maps in the size that is drawn, and the side in px of the averaged squares."""
        if averaged is not None:
            return averaged.within(maps), averaged.block
        most = longest(self.max_tile, layout)
        return shrink(maps, most)

    def _limits(self, lo: Floats, hi: Floats, has_one_pixel: bool) -> Limits:
        """The values drawn as 0 and as 255, f64 [n, c], before a scale is locked.

        Args:
            lo: Smallest finite value f64 [n, c] of each plane; infinite if there is none.
            hi: Largest finite value, likewise.
            has_one_pixel: The planes have one pixel.
        """
        if self.scale == "layer" or has_one_pixel:
            lowest = lo.min(1, keepdims=True)
            highest = hi.max(1, keepdims=True)
            lo = np.broadcast_to(lowest, lo.shape)
            hi = np.broadcast_to(highest, hi.shape)
        if self.zero_centered:
            hi = _magnitude(lo, hi)
            lo = -hi
        has_no_value = np.isinf(lo) | np.isinf(hi)  # no finite one
        lo = np.where(has_no_value, 0.0, lo)
        hi = np.where(has_no_value, 0.0, hi)
        return lo, hi

    def _lock(self, key: Hashable, lo: Floats, hi: Floats) -> Limits:
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
    if scale == "channel" and _have_one_pixel(planes.pixels):
        return "layer"
    return scale


def _have_one_pixel(planes: Floats | Bytes8) -> bool:
    """True if planes [n, c, h, w] have one pixel each."""
    return planes.shape[2:] == (1, 1)


def _magnitude(lo: Floats, hi: Floats) -> Floats:
    """The larger of the absolute values of two limits."""
    return np.maximum(np.abs(lo), np.abs(hi))


def _constant_planes(
    lo: Floats, hi: Floats, whole: Floats | Averaged
) -> tuple[Floats, Floats, Flags]:
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
    rounding = 1e-5 * _magnitude(lo, hi)
    with np.errstate(invalid="ignore"):  # inf - inf, where no value is finite
        is_narrow = hi - lo <= rounding
    flat = (lo <= hi) & is_narrow
    if not flat.any():
        return lo, hi, flat
    if isinstance(whole, Averaged):
        true_lo, true_hi = whole.extremes(lo, lo)
    else:
        true_lo, true_hi, _ = finite_extremes(whole, _PLANE)
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
    _, exponent = np.frexp(_magnitude(lo, hi))  # [n, c]
    exponent = np.clip(exponent, -126, 126)
    if (np.abs(exponent) >= 64).any():
        unit = np.ldexp(1.0, -exponent)
        lo = lo * unit
        hi = hi * unit
        maps = maps * _per_plane(unit, maps.dtype)
    low = _per_plane(lo, maps.dtype)
    span = _per_plane(hi, maps.dtype) - low
    span[span <= 0] = np.inf
    pixels = np.empty(maps.shape, np.uint8)
    channels = maps.shape[1]
    fitting = _CACHED_BYTES * channels // max(1, maps.nbytes)
    step = max(1, fitting)  # channels that fit the cache
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
    is_nan = np.isnan(maps)
    is_up = maps == np.inf
    is_down = maps == -np.inf
    marks = np.zeros(maps.shape, np.uint8)
    marks[is_nan] = PixelMark.NAN
    marks[is_up] = PixelMark.POSITIVE_INFINITY
    marks[is_down] = PixelMark.NEGATIVE_INFINITY
    if not marks.any():
        return None
    return marks
