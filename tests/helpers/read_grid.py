"""Values read back from stored grids: the inverse of `grid.draw_maps`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fmapboard.records import Bytes8, Floats, PixelMark
from fmapboard.render.grid import PADDING, columns
from fmapboard.render.palettes import PIXEL_OF_LEVEL, Palette

_SHIFTS = np.array([16, 8, 0], np.uint32)


def read_maps(
    pixels: Bytes8, lo: Floats, hi: Floats, tile: tuple[int, int], colours: Palette
) -> tuple[Floats, Bytes8]:
    """The inverse of `grid.draw_maps`: values and marks of a stored grid.

    Args:
        pixels: u8 [H, W] grey, or u8 [H, W, 3] the picture decoded to RGB.
        lo: [C], the value of pixel 0 of each channel.
        hi: [C], the value of pixel 255.
        tile: (height, width) of one map.
        colours: the palette that it was drawn with.

    Returns:
        values f64 [C, h, w], NaN where there is a mark, each within 2 of 255 of the channel's
        range below the true value; marks u8 [C, h, w], a `PixelMark` or 0.

    Raises:
        ValueError: a colour is not in the palette.
    """
    levels, marks = _levels(pixels, colours)
    cut_levels, cut_marks = (_cut(plane, len(lo), tile) for plane in (levels, marks))
    span = (np.asarray(hi, np.float64) - lo)[:, None, None]
    values = np.asarray(lo, np.float64)[:, None, None] + span * cut_levels / 255.0  # [C, h, w]
    values[cut_marks != 0] = np.nan
    return values, cut_marks


def _levels(pixels: Bytes8, colours: Palette) -> tuple[Bytes8, Bytes8]:
    """Pixel values 0…255 and marks of a decoded picture, both u8 [H, W]."""
    if pixels.ndim == 2:
        return pixels, np.zeros_like(pixels)
    packed, table = _packed(pixels), _packed(colours.table)
    order = np.argsort(table)
    place = np.searchsorted(table[order], packed).clip(max=len(table) - 1)
    index = order[place].astype(np.uint8)  # [H, W]
    is_mark = index >= PixelMark.PADDING
    level = PIXEL_OF_LEVEL[np.where(is_mark, 0, index)]
    unknown = table[index] != packed
    if unknown.any():
        # A plain grey picture holds all 256 greys, six more than the palette.
        if colours.name != "grey" or np.ptp(pixels[unknown], axis=-1).any():
            raise ValueError(
                f"the picture holds colours that are not in the palette {colours.name!r}"
            )
        level[unknown], is_mark[unknown] = pixels[unknown, 0], False
    return level, np.where(is_mark, index, 0).astype(np.uint8)


def _packed(colours: Bytes8) -> npt.NDArray[np.uint32]:
    """Colours [..., 3] packed into one number each."""
    packed: npt.NDArray[np.uint32] = (colours.astype(np.uint32) << _SHIFTS).sum(-1, dtype=np.uint32)
    return packed


def _cut(picture: Bytes8, count: int, tile: tuple[int, int]) -> Bytes8:
    """The tiles of a grid, [C, h, w]."""
    if count == 1:
        return picture[None]
    height, width = tile
    per_row = columns(count)
    tops = [PADDING + (i // per_row) * (height + PADDING) for i in range(count)]
    lefts = [PADDING + (i % per_row) * (width + PADDING) for i in range(count)]
    return np.stack(
        [picture[y : y + height, x : x + width] for y, x in zip(tops, lefts, strict=True)]
    )
