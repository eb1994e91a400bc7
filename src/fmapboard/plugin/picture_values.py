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
_SHARE_OF_INDEX = (np.ceil(_INDICES * 256 / _LEVELS) / 255).astype(np.float32)
"""Position of a palette index between ``lo`` and ``hi``, 0…1."""


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


def decoded(png: bytes, rows: int | None = None) -> tuple[str, npt.NDArray[np.uint8]] | None:
    """Mode ("L", "P", "RGB") and pixels of a PNG; None if it cannot be read.

    Args:
        png: the file.
        rows: how many rows of pixels to decode, from the top; None for all.
    """
    sides = struct.unpack(">II", png[16:24]) if is_png(png) else (0, 0)
    if not 0 < sides[0] * sides[1] <= _MAX_PIXELS:
        return None
    if rows is not None and 0 < rows < sides[1]:  # a decoder stops after as many as the header says
        sides = sides[0], rows
        header = png[12:20] + struct.pack(">I", rows) + png[24:29]
        png = png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
            # A second header, of a larger picture, is the one that Pillow follows.
            return (picture.mode, np.asarray(picture)) if picture.size == sides else None
    except Exception:  # damaged files make Pillow raise nearly anything
        return None


def decoded_map(png: bytes, rows: int | None = None) -> tuple[str, npt.NDArray[np.uint8]] | None:
    """As `decoded`, for a picture of maps: None if it is neither grey nor indexed."""
    found = decoded(png, rows)
    return found if found is not None and found[0] in ("L", "P") else None


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
    mode, pixels = decoded_map(png) or ("", None)
    tiles = None if pixels is None else tiles_of(pixels, picture)
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
    grid = _grid(picture)
    if grid is None or grid.drawn * grid.height * grid.width > pixels.size:
        return None
    tiles = [grid.tile(pixels, i) for i in range(grid.drawn)]
    is_whole = all(tile.shape == (grid.height, grid.width) for tile in tiles)
    return np.stack(tiles) if is_whole else None


def tile_of(png: bytes, picture: Mapping[str, Any], i: int) -> tuple[str, Any] | None:
    """Mode ("L" or "P") and pixels [height, width] of tile ``i``; None as for `map_values`."""
    grid = _grid(picture)
    if grid is None or i >= grid.drawn:
        return None
    found = decoded_map(png, grid.corner(i)[0] + grid.height)
    if found is None:
        return None
    tile = grid.tile(found[1], i)
    return (found[0], tile) if tile.shape == (grid.height, grid.width) else None


class _Grid(NamedTuple):
    height: int
    width: int
    drawn: int
    columns: int
    padding: int

    def corner(self, i: int) -> tuple[int, int]:
        """Top and left of a tile, px."""
        around = 0 if self.drawn == 1 else self.padding
        row, column = divmod(i, self.columns)
        top, left = row * (self.height + self.padding), column * (self.width + self.padding)
        return around + top, around + left

    def tile(self, pixels: npt.NDArray[np.uint8], i: int) -> npt.NDArray[np.uint8]:
        """A tile, smaller if the picture ends before."""
        top, left = self.corner(i)
        return pixels[top : top + self.height, left : left + self.width]


def _grid(picture: Mapping[str, Any]) -> _Grid | None:
    """The grid that the entry of a picture describes; None if it describes none."""
    try:
        drawn, columns, padding = (picture[name] for name in ("drawn", "columns", "padding"))
        numbers = (*picture["tile"], drawn, columns, padding)
    except (LookupError, TypeError):
        return None
    is_grid = len(numbers) == 5 and all(type(number) is int for number in numbers)
    return _Grid(*numbers) if is_grid and min(*numbers[:4], padding + 1) >= 1 else None
