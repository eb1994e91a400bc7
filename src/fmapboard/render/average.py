"""Downscale maps by averaging square blocks of pixels."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from fmapboard.records import Bytes8, Floats

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
    block = -(-side // max_side)
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
    bottom, right = (-side % block for side in pixels.shape[-2:])
    edges = [(0, 0)] * (pixels.ndim - 2) + [(0, bottom), (0, right)]
    means = _means(np.pad(pixels, edges, mode="edge").astype(np.float64), block)
    highest = None if marks is None else _combined(marks, block, np.maximum)
    return means.astype(np.uint8), highest


def _means(maps: Floats, block: int) -> Floats:
    sums = _combined(maps, block, np.add)
    heights, widths = (_counts(side, block) for side in maps.shape[-2:])
    sums /= (heights[:, None] * widths).astype(maps.dtype)
    return sums


def _combined(values: Values, block: int, combine: np.ufunc) -> Values:
    """Reduce each block of values [..., H, W] to one value, in a new array."""
    return _along(_along(values, block, combine, -2), block, combine, -1)


def _along(values: Values, block: int, combine: np.ufunc, axis: int) -> Values:
    """Reduce each run of ``block`` values along an axis to one value, in a new array."""

    def index(along_axis: slice) -> tuple[slice, ...]:
        return (*[slice(None)] * (axis % values.ndim), along_axis)

    result: Values = values[index(slice(0, None, block))].copy()
    for offset in range(1, min(block, values.shape[axis])):
        some = values[index(slice(offset, None, block))]
        inside = result[index(slice(some.shape[axis]))]
        combine(inside, some, out=inside)
    return result


def _counts(length: int, block: int) -> Floats:
    """Number of values in each block along an axis of ``length`` values."""
    return np.minimum(length - np.arange(0, length, block), block).astype(np.float64)
