"""Read stored pictures back into the values that they show."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fmapboard.formats.tab_records import Floats

_NOT_FINITE = (251, 252, 253)
"""Palette indices of NaN, +Inf and -Inf."""
_CONSTANT = 254
"""From here on, a palette index marks a channel whose only value is ``lo``."""
_LEVELS = 250
"""Number of palette indices that are values, from ``lo`` to ``hi``; those after them are marks."""
_PNG = b"\x89PNG\r\n\x1a\n"
_MAX_PIXELS = 2**26  # Pillow warns of larger pictures
_INDICES = np.minimum(np.arange(256), _LEVELS - 1)
_SHARE_OF_INDEX = (np.ceil(_INDICES * 256 / _LEVELS) / 255).astype(np.float32)
"""Position of a palette index between ``lo`` and ``hi``, 0…1."""


@dataclass(frozen=True, slots=True)
class MapValues:
    """The drawn maps of one sample.

    Attributes:
        values: float32 [drawn, height, width]; NaN where a value is not finite.
        unit: largest difference of a value from the true one due to rounding, per channel [drawn].
    """

    values: Floats
    unit: Floats


def is_png(content: bytes) -> bool:
    """True for bytes that begin as a PNG with its width and height."""
    return len(content) >= 24 and content.startswith(_PNG)


def decoded(png: bytes) -> tuple[str, npt.NDArray[np.uint8]] | None:
    """Mode ("L", "P", "RGB") and pixels of a PNG; None if it, or Pillow, cannot be read."""
    try:
        from PIL import Image
    except ImportError:
        return None
    sides = struct.unpack(">II", png[16:24]) if is_png(png) else (0, 0)
    if not 0 < sides[0] * sides[1] <= _MAX_PIXELS:
        return None
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
            # A second header, of a larger picture, is the one that Pillow follows.
            return (picture.mode, np.asarray(picture)) if picture.size == sides else None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None
    except (OSError, EOFError, ValueError, SyntaxError, struct.error, zlib.error):
        return None  # damaged


def map_values(png: bytes, picture: Mapping[str, Any], lo: Floats, hi: Floats) -> MapValues | None:
    """The values of a stored picture of maps.

    Args:
        png: the picture of one sample.
        picture: its entry in the record's header (see `formats.tab_records`).
        lo: lower end of each channel's scale, [drawn].
        hi: upper end, [drawn].

    Returns:
        None if the picture cannot be read, or is neither grey nor indexed.
    """
    found = decoded(png)
    if found is None or found[0] not in ("L", "P") or found[1].ndim != 2:
        return None
    mode, pixels = found
    tiles = tiles_of(pixels, picture)
    if tiles is None or len(tiles) != len(lo):
        return None
    span = np.where(np.isfinite(hi - lo), hi - lo, 0).astype(np.float32)[:, None, None]
    start = np.where(np.isfinite(lo), lo, 0).astype(np.float32)[:, None, None]
    values = start + span * (_SHARE_OF_INDEX[tiles] if mode == "P" else tiles / np.float32(255))
    if mode == "P":
        values[np.isin(tiles, _NOT_FINITE)] = np.nan
        values = np.where(tiles >= _CONSTANT, start, values)
    coarse = 255 if mode == "L" else _LEVELS
    return MapValues(values, span[:, 0, 0] / coarse / 2)


def tiles_of(pixels: npt.NDArray[np.uint8], picture: Mapping[str, Any]) -> Any:
    """The tiles of a grid, [drawn, height, width]; None if the header does not fit the picture."""
    try:
        height, width = picture["tile"]
        drawn, padding, columns = (picture[name] for name in ("drawn", "padding", "columns"))
    except (LookupError, TypeError, ValueError):
        return None
    numbers = (height, width, drawn, columns, padding)
    if not all(type(number) is int for number in numbers) or min(*numbers[:4], padding + 1) < 1:
        return None
    if drawn * height * width > pixels.size:
        return None
    around = 0 if drawn == 1 else padding
    tiles = np.empty((drawn, height, width), np.uint8)
    for i in range(drawn):
        top = around + i // columns * (height + padding)
        left = around + i % columns * (width + padding)
        tile = pixels[top : top + height, left : left + width]
        if tile.shape != (height, width):
            return None
        tiles[i] = tile
    return tiles
