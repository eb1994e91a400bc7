"""Draw stored maps smaller, for a report that would be too large."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmapboard.plugin.picture_values import decoded, tiles_of
from fmapboard.records import Picture, PixelMark
from fmapboard.render import png as encoder
from fmapboard.render.grid import grid
from fmapboard.render.palettes import LEVEL_OF_PIXEL, PIXEL_OF_LEVEL, VALUES, palette
from fmapboard.render.quantize import shrink_pixels


def shrunk(stored: bytes, picture: Mapping[str, Any], block: int) -> bytes | None:
    """A PNG of the same maps, each pixel the mean of a square; None if it cannot be read.

    A square that contains marks gets the mark with the highest code among them.

    Args:
        stored: PNG of one sample's maps.
        picture: its entry in the record's header.
        block: side of a square, px.
    """
    found = decoded(stored)
    if found is None or found[0] not in ("L", "P") or found[1].ndim != 2:
        return None
    tiles = tiles_of(found[1], picture)  # [C, H, W]
    if tiles is None:
        return None
    columns = picture.get("columns", max(1, math.isqrt(len(tiles))))
    padding = picture.get("padding", 2)
    if found[0] == "L":
        means, _ = shrink_pixels(tiles, None, block)  # [C, h, w]
        drawn = Picture(grid(means, columns, padding, 0), tile=means.shape[1:], compact=True)
        return encoder.encode(drawn)
    pixels = PIXEL_OF_LEVEL[np.minimum(tiles, VALUES - 1)]
    marks = np.where(tiles >= VALUES, tiles, 0)
    means, highest = shrink_pixels(pixels, marks, block)  # [C, h, w]
    assert highest is not None  # there were marks
    indices = np.where(highest != 0, highest, LEVEL_OF_PIXEL[means])
    laid_out = grid(indices, columns, padding, PixelMark.PADDING)
    table = palette(picture["palette"]).table
    return encoder.encode(Picture(laid_out, table, indices.shape[1:], compact=True))
