"""Maps averaged down over square blocks of pixels."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from fmapboard.records import Bytes8, Floats

Values = TypeVar("Values", Floats, Bytes8)


def shrink(maps: Floats, max_side: int | None) -> tuple[Floats, int]:
    """Maps [..., H, W] averaged down by area until no side exceeds ``max_side`` px.

    Blocks are whole squares, so a drawn pixel is the plain mean of the block; those at the right
    and lower border may be cut off by it. Float32 sums that could overflow are taken in float64.

    Returns:
        The maps, the given array itself where nothing was to be done; the block's side in px.
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
    """Pixels u8 [..., H, W] averaged over square blocks of ``block`` px, rounded down.

    The last row and column are repeated to fill their blocks. A block that holds a mark becomes
    the highest one that it holds.
    """
    down, right = (-side % block for side in pixels.shape[-2:])
    edges = [(0, 0)] * (pixels.ndim - 2) + [(0, down), (0, right)]
    means = _means(np.pad(pixels, edges, mode="edge").astype(np.float64), block)
    highest = None if marks is None else _combined(marks, block, np.maximum)
    return means.astype(np.uint8), highest


def _means(maps: Floats, block: int) -> Floats:
    sums = _combined(maps, block, np.add)
    heights, widths = (_counts(side, block) for side in maps.shape[-2:])
    sums /= (heights[:, None] * widths).astype(maps.dtype)
    return sums


def _combined(values: Values, block: int, combine: np.ufunc) -> Values:
    """Each block [..., h, w] of values [..., H, W] combined, a new array."""
    return _along(_along(values, block, combine, -2), block, combine, -1)


def _along(values: Values, block: int, combine: np.ufunc, axis: int) -> Values:
    """Each ``block`` neighbours along an axis combined, a new array."""

    def part(one: slice) -> tuple[slice, ...]:
        return (*[slice(None)] * (axis % values.ndim), one)

    found: Values = values[part(slice(0, None, block))].copy()
    for offset in range(1, min(block, values.shape[axis])):
        some = values[part(slice(offset, None, block))]
        inside = found[part(slice(some.shape[axis]))]
        combine(inside, some, out=inside)
    return found


def _counts(length: int, block: int) -> Floats:
    """How many of ``length`` values each block along an axis has."""
    return np.minimum(length - np.arange(0, length, block), block).astype(np.float64)
