"""Colour tables: 250 entries for values and 6 for marks (NaN, infinity, padding, ...).

A picture with colours or marks stores one palette index per pixel: 0…249 are values, 250…255 are
``PixelMark`` codes. Index 0 is ``lo`` and 249 is ``hi``. Mark colours differ from all value colours
of all palettes and are never grey, so values and marks can be told apart in RGB as well.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fmapboard.errors import ConfigurationError, closest
from fmapboard.records import Bytes8, PixelMark

PALETTES = ("grey", "viridis", "magma", "signed")
"""Names of the color palettes; ``signed`` has zero in the middle."""

VALUES = 250

MARK_COLOURS: dict[PixelMark, tuple[int, int, int]] = {
    PixelMark.PADDING: (0, 0, 32),
    PixelMark.NAN: (255, 0, 255),
    PixelMark.POSITIVE_INFINITY: (255, 0, 0),
    PixelMark.NEGATIVE_INFINITY: (0, 0, 255),
    PixelMark.CONSTANT: (0, 225, 225),
    PixelMark.DEAD: (255, 128, 0),
}

LEGEND = "magenta = NaN, red = +Inf, blue = −Inf, cyan = constant channel, orange = dead channel"

# 256 pixel values share 250 indices: six pairs of neighbours have the same index, so the grey that
# is shown differs from the pixel by at most 1 of 255.
LEVEL_OF_PIXEL: Bytes8 = (np.arange(256) * VALUES // 256).astype(np.uint8)
PIXEL_OF_LEVEL: Bytes8 = np.searchsorted(LEVEL_OF_PIXEL, np.arange(VALUES)).astype(np.uint8)

_ANCHORS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "viridis": (
        (68, 1, 84), (72, 40, 120), (62, 73, 137), (49, 104, 142), (37, 130, 142),
        (31, 158, 137), (53, 183, 121), (109, 205, 89), (180, 222, 44), (253, 231, 37),
    ),
    "magma": (
        (0, 0, 4), (24, 15, 61), (68, 15, 118), (114, 31, 129), (158, 47, 127),
        (205, 64, 113), (241, 96, 93), (253, 150, 104), (254, 202, 141), (252, 253, 191),
    ),
    "signed": (
        (8, 48, 107), (33, 102, 172), (67, 147, 195), (146, 197, 222), (209, 229, 240),
        (247, 247, 247),
        (253, 219, 199), (244, 165, 130), (214, 96, 77), (178, 24, 43), (110, 0, 30),
    ),
}  # fmt: skip


class Palette(NamedTuple):
    """A colour table.

    Attributes:
        name: Name of the palette.
        table: u8 [256, 3].
        zero_centered: The palette is meant for a scale with zero in the middle.
    """

    name: str
    table: Bytes8
    zero_centered: bool = False


def checked_colormap(name: str) -> str:
    """The palette's name, with ``gray`` spelled as ``grey``.

    Raises:
        ConfigurationError: there is no such palette; the message lists the closest names.
    """
    name = "grey" if name == "gray" else name
    if name not in PALETTES:
        raise ConfigurationError(
            f"no palette {name!r}{closest(str(name), PALETTES, listed=0)}; "
            f"available: {', '.join(PALETTES)}"
        )
    return name


@lru_cache
def palette(name: str) -> Palette:
    """The palette named ``grey``, ``viridis``, ``magma`` or ``signed`` (zero-centered).

    Raises:
        ConfigurationError: There is no palette with this name.
    """
    name = checked_colormap(name)
    table = np.empty((256, 3), np.uint8)
    if name == "grey":
        table[:VALUES] = PIXEL_OF_LEVEL[:, None]
    else:
        anchors = np.array(_ANCHORS[name], np.float64)
        places = np.linspace(0, len(anchors) - 1, VALUES)
        known = np.arange(len(anchors))
        channels = [np.interp(places, known, values) for values in anchors.T]
        table[:VALUES] = np.stack(channels, axis=1).round()
    for mark, colour in MARK_COLOURS.items():
        table[mark] = colour
    table.flags.writeable = False
    return Palette(name, table, zero_centered=name == "signed")
