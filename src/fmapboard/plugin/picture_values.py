"""Read stored pictures back into the values that they show."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

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
SHARE_OF_INDEX = (np.ceil(_INDICES * 256 / _LEVELS) / 255).astype(np.float32)
"""Position of a palette index between ``lo`` and ``hi``, 0…1."""

Pixels = npt.NDArray[np.uint8]


class Decoded(NamedTuple):
    """A decoded picture: its mode ("L", "P", "RGB"), and its pixels [height, width, ...]."""

    mode: str
    pixels: Pixels


class MapValues(NamedTuple):
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


def decoded(png: bytes, rows: int | None = None) -> Decoded | None:
    """Decode a PNG; None if it cannot be read.

    Args:
        png: the file.
        rows: how many rows of pixels to decode, from the top; None for all.
    """
    if not is_png(png):
        return None
    width, height = struct.unpack(">II", png[16:24])
    if not 0 < width * height <= _MAX_PIXELS:
        return None
    if rows is not None and 0 < rows < height:
        # A decoder stops after as many rows as the header says.
        height = rows
        new_height = struct.pack(">I", rows)
        header = png[12:20] + new_height + png[24:29]
        checksum = struct.pack(">I", zlib.crc32(header))
        png = png[:12] + header + checksum + png[33:]
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
            # A second header, of a larger picture, is the one that Pillow follows.
            if picture.size != (width, height):
                return None
            return Decoded(picture.mode, np.asarray(picture))
    except Exception:  # damaged files make Pillow raise nearly anything
        return None


def decoded_map(png: bytes, rows: int | None = None) -> Decoded | None:
    """As `decoded`, for a picture of maps: None if it is neither grey nor indexed."""
    found = decoded(png, rows)
    if found is None or found.mode not in ("L", "P"):
        return None
    return found


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
    found = decoded_map(png)
    if found is None:
        return None
    tiles = tiles_of(found.pixels, picture)
    if tiles is None or len(tiles) != len(lo):
        return None
    start = _finite(lo)
    span = _finite(hi - lo)
    channel_span = span[:, 0, 0]  # [drawn]
    if found.mode == "L":
        share = tiles / np.float32(255)
        return MapValues(start + span * share, unit=channel_span / 255 / 2)
    values = start + span * SHARE_OF_INDEX[tiles]
    values[np.isin(tiles, _NOT_FINITE)] = np.nan
    values = np.where(tiles >= _CONSTANT, start, values)
    return MapValues(values, unit=channel_span / _LEVELS / 2)


def _finite(numbers: Floats) -> Floats:
    """Numbers per channel [drawn] as float32 [drawn, 1, 1]; 0 where they are not finite."""
    finite = np.where(np.isfinite(numbers), numbers, 0)
    return finite.astype(np.float32)[:, None, None]


def tiles_of(pixels: Pixels, picture: Mapping[str, Any]) -> Pixels | None:
    """The tiles of a grid, [drawn, height, width]; None if the header does not fit the picture."""
    grid = _grid(picture)
    if grid is None:
        return None
    size = grid.drawn * grid.height * grid.width
    if size > pixels.size:
        return None
    tiles = []
    for i in range(grid.drawn):
        tile = grid.tile(pixels, i)
        if tile is None:
            return None
        tiles.append(tile)
    return np.stack(tiles)


def tile_of(png: bytes, picture: Mapping[str, Any], i: int) -> Decoded | None:
    """Mode ("L" or "P") and pixels [height, width] of tile ``i``; None as for `map_values`."""
    grid = _grid(picture)
    if grid is None or i >= grid.drawn:
        return None
    top, _ = grid.corner(i)
    found = decoded_map(png, top + grid.height)
    if found is None:
        return None
    tile = grid.tile(found.pixels, i)
    return None if tile is None else Decoded(found.mode, tile)


class _Grid(NamedTuple):
    height: int
    width: int
    drawn: int
    columns: int
    padding: int

    def corner(self, i: int) -> tuple[int, int]:
        """Top and left of a tile, px."""
        border = 0 if self.drawn == 1 else self.padding
        row, column = divmod(i, self.columns)
        top = border + row * (self.height + self.padding)
        left = border + column * (self.width + self.padding)
        return top, left

    def tile(self, pixels: Pixels, i: int) -> Pixels | None:
        """A tile [height, width]; None if the picture ends before."""
        top, left = self.corner(i)
        bottom = top + self.height
        right = left + self.width
        tile = pixels[top:bottom, left:right]
        return tile if tile.shape == (self.height, self.width) else None


def _grid(picture: Mapping[str, Any]) -> _Grid | None:
    """The grid that the entry of a picture describes; None if it describes none."""
    try:
        height, width = picture["tile"]
        grid = _Grid(height, width, picture["drawn"], picture["columns"], picture["padding"])
    except (LookupError, TypeError, ValueError):
        return None
    if not all(type(number) is int for number in grid):
        return None
    has_tiles = min(grid.height, grid.width, grid.drawn, grid.columns) >= 1
    return grid if has_tiles and grid.padding >= 0 else None
