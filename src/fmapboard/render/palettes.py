"""Colour tables: 250 entries for values and 6 for marks (NaN, infinity, padding, ...).

A picture with colours or marks stores one palette index per pixel: 0…249 are values, 250…255 are
``PixelMark`` codes. Index 0 is ``lo`` and 249 is ``hi``. Mark colours differ from all value colours
of all palettes and are never grey, so values and marks can be told apart in RGB as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.errors import ConfigurationError, closest
from fmapboard.records import Bytes8, Floats, PixelMark

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

_ANCHORS = {
    "viridis": "440154 482878 3e4989 31688e 25828e 1f9e89 35b779 6dcd59 b4de2c fde725",
    "magma": "000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf",
    "signed": "08306b 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 6e001e",
}
"""Equidistant colours of each palette, in hexadecimal."""


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
    if name == "gray":
        return "grey"
    if name not in PALETTES:
        near = closest(str(name), PALETTES, listed=0)
        available = ", ".join(PALETTES)
        raise ConfigurationError(f"no palette {name!r}{near}; available: {available}")
    return name


def interpolated(places: Floats, stops: Sequence[float], colours: npt.ArrayLike) -> Floats:
    """Colours of a ramp.

    Args:
        places: Where along the ramp, [P].
        stops: Where the ramp has the given colours, ascending, [S].
        colours: [S, 3].

    Returns:
        f64 [P, 3].
    """
    result = np.empty((len(places), 3))
    for channel, values in enumerate(np.transpose(colours)):
        result[:, channel] = np.interp(places, stops, values)
    return result


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
        anchors = np.frombuffer(bytes.fromhex(_ANCHORS[name]), np.uint8).reshape(-1, 3)
        stops = range(len(anchors))
        places = np.linspace(0, stops[-1], VALUES)
        colours = interpolated(places, stops, anchors)
        table[:VALUES] = colours.round()
    for mark, colour in MARK_COLOURS.items():
        table[mark] = colour
    table.flags.writeable = False
    return Palette(name, table, zero_centered=name == "signed")
