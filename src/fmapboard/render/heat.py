"""Pictures of input images: with attribution as heat over them, or with a high loss below them.

Under heat, which is readable in grey and without colours, the input is dimmed to greys of low
contrast; heat is drawn over it from dark orange to bright yellow. Lightness never falls where heat
rises, so the hottest places are the brightest whatever colours the reader sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

# NumPy's view of a picture imports the last one, which the worker thread is not to do.
from PIL import Image, ImageDraw, ImageFile  # noqa: F401

from fmapboard.arithmetic import ceil_div
from fmapboard.records import Bytes8, Floats, HardImage, InputImage, Normalization, Picture
from fmapboard.render.grid import PADDING, SMALL_TILE, draw_input_image, grid
from fmapboard.render.palettes import interpolated

_NEGLIGIBLE = 128
"""Grey value of a picture without attribution."""

_DARK = 24.0
_LIGHT = 96.0
"""Grey values of black and white in the input."""

_STOPS = (0.0, 0.4, 0.75, 1.0)
_COLOURS = (
    (168, 84, 40),
    (214, 100, 20),
    (250, 170, 40),
    (255, 244, 120),
)
"""Colour at each of these stops of heat; lightness rises throughout."""

_OPACITY = 1.6
"""Opacity of the strongest heat; from 1 on the input is hidden."""

_LUMA = np.array([0.299, 0.587, 0.114])
"""Rec. 601."""

LEGEND = (
    "grey = the input, orange to bright yellow = the map, scaled to its maximum; one even grey = "
    "the map is negligible or not finite"
)


def dimmed(image: InputImage, side: int) -> Floats:
    """The input image below the heat: f64 [h, w], grey values of low contrast.

    Args:
        image: The input image.
        side: Length in px of the picture's longer side; a smaller image is not enlarged.
    """
    picture, _ = draw_input_image(image)
    grey = picture.pixels.astype(np.float64)  # [H, W], 0…255
    if grey.ndim == 3:
        grey = grey @ _LUMA
    height, width = grey.shape
    factor = min(1.0, side / max(height, width))
    smaller_height = max(1, round(height * factor))
    smaller_width = max(1, round(width * factor))
    smaller = resized(grey, smaller_height, smaller_width)
    return _DARK + smaller / 255 * (_LIGHT - _DARK)


def heat_over(below: Floats, heat: Floats | None) -> Picture:
    """Draw a heat map over an input image, at the image's aspect, in RGB.

    Args:
        below: What ``dimmed`` returned for the image; several heat maps can share it.
        heat: [H, W], of any size and not all zero; negative values are drawn as 0. None draws an
            even grey.
    """
    height, width = below.shape
    if heat is None:
        return Picture(np.full((height, width, 3), _NEGLIGIBLE, np.uint8))
    hot = resized(np.maximum(heat, 0), height, width)
    return Picture(_blended(below, hot / hot.max()))


def _blended(grey: Floats, heat: Floats) -> Bytes8:
    """Heat 0 … 1 over grey values, both [h, w]: u8 [h, w, 3]."""
    colours = interpolated(heat.ravel(), _STOPS, _COLOURS).reshape(*heat.shape, 3)
    opacity = np.minimum(1, heat * _OPACITY)[..., None]  # [h, w, 1]
    mixed = grey[..., None] * (1 - opacity) + colours * opacity  # [h, w, 3]
    pixels: Bytes8 = mixed.round().astype(np.uint8)
    return pixels


def resized(values: Floats, height: int, width: int) -> Floats:
    """Values [H, W] resized with a triangle filter, which averages where it shrinks."""
    picture = Image.fromarray(values.astype(np.float32))
    smaller = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(smaller, np.float64)


_PER_ROW = 4
"""Images with a high loss per row."""

_TEXT_WIDTH = 90
_TEXT_HEIGHT = 45
"""Size in px of the text below each of them."""


def draw_hard_images(
    images: Sequence[HardImage], normalization: Normalization | None, names: Sequence[str]
) -> Picture:
    """Draw images with a high loss side by side, each with label, prediction and loss below it.

    Args:
        images: At least one, all of one size.
        normalization: As in `InputImage`.
        names: Of the classes; those that have none are numbered.
    """

    def named(number: int) -> str:
        return names[number] if number < len(names) else str(number)

    tiles = list[Bytes8]()
    for hard in images:
        input_image = InputImage(hard.sample, hard.values, normalization)
        picture, _ = draw_input_image(input_image)
        side = max(picture.pixels.shape[:2])
        factor = ceil_div(2 * SMALL_TILE, side)
        rows = picture.pixels.repeat(factor, axis=0)
        image = Image.fromarray(rows.repeat(factor, axis=1))
        width = max(image.width, _TEXT_WIDTH)
        page = Image.new("RGB", (width, image.height + _TEXT_HEIGHT), "white")
        page.paste(image)
        lines = (
            f"is {named(hard.label)}",
            f"got {named(hard.prediction)}",
            f"loss {hard.loss:.3g}",
        )
        for row, text in enumerate(lines):
            top = image.height + row * _TEXT_HEIGHT // 3
            page.paste(_written(text, width), (0, top))
        tiles.append(np.asarray(page))
    laid_out = grid(np.stack(tiles), _PER_ROW, PADDING, 255)
    return Picture(laid_out)


@lru_cache(1024)  # drawing a label takes longer than the image above it
def _written(text: str, width: int) -> Image.Image:
    """A row of text, in dark on white."""
    row = Image.new("RGB", (width, _TEXT_HEIGHT // 3), "white")
    latin = text.encode("latin-1", "replace")  # in every font of Pillow
    pen = ImageDraw.Draw(row)
    pen.text((2, 0), latin.decode("latin-1"), "black")
    return row
