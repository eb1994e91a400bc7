"""Small text on pictures: the numbers of channels and the values."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fmapboard.records import Bytes8

HEIGHT = 9
"""Height of a line of text in px; below the digits there is nothing."""

_FONT = ImageFont.load_default()

INK = 40
"""Grey value of text."""

_BACKGROUND = 255
"""Grey value of a page."""


def text_width(text: str) -> int:
    """Width of a line of text in px."""
    return math.ceil(_FONT.getlength(text))


def blank_page(height: int, width: int) -> Bytes8:
    """White pixels, u8 [height, width, 3]."""
    return np.full((height, width, 3), _BACKGROUND, np.uint8)


def write(page: Bytes8, text: str, top: int, left: int, ink: int = INK) -> None:
    """Write a line of text onto a page, u8 [H, W, 3], as far as it fits there.

    Args:
        page: Changed in place.
        text: Digits, signs and the letters of ``inf`` and ``nan``.
        top: Of the line, px.
        left: Of the line, px.
        ink: Grey value of the text.
    """
    size = (text_width(text), HEIGHT)
    line = Image.new("L", size, _BACKGROUND)
    draw = ImageDraw.Draw(line)
    draw.text((0, -1), text, ink, _FONT)
    bottom = top + HEIGHT
    right = left + line.width
    area = page[top:bottom, left:right]
    height, width, _ = area.shape
    pixels = np.asarray(line)[:height, :width]
    area[:] = pixels[:, :, None]
