"""Pictures of input images: with attribution as heat over them, or with a high loss below them.

Under heat, which is readable in grey and without colours, the input is dimmed to greys of low
contrast; heat is drawn over it from dark orange to bright yellow. Lightness never falls where heat
rises, so the hottest places are the brightest whatever colours the reader sees. One palette holds
all combinations, so a pixel takes one byte.
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

GREYS = 8
"""Levels of grey."""

HEATS = 16
"""Levels of heat; level 0 is the input alone."""

_NEGLIGIBLE = GREYS * HEATS
"""Palette index of a tile without attribution."""

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
    """The input image below the heat: f64 [h, w], levels of grey 0 … GREYS - 1, not rounded.

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
    return smaller / 255 * (GREYS - 1)


def heat_over(below: Floats, heat: Floats | None) -> Picture:
    """Draw a heat map over an input image, at the image's aspect.

    Args:
        below: What ``dimmed`` returned for the image; several heat maps can share it.
        heat: [H, W], of any size and not all zero; negative values are drawn as 0. None draws an
            even grey.
    """
    if heat is None:
        even = np.full(below.shape, _NEGLIGIBLE, np.uint8)
        return Picture(even, _table())
    height, width = below.shape
    grey = np.rint(below)
    positive = np.maximum(heat, 0)
    hot = resized(positive, height, width)
    level = np.rint(hot / hot.max() * (HEATS - 1))
    opacity = level / (HEATS - 1) * _OPACITY
    grey[opacity >= 1] = 0  # hidden: so a pixel compresses better
    indices = level * GREYS + grey
    return Picture(indices.astype(np.uint8), _table())


def resized(values: Floats, height: int, width: int) -> Floats:
    """Values [H, W] resized with a triangle filter, which averages where it shrinks."""
    picture = Image.fromarray(values.astype(np.float32))
    smaller = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(smaller, np.float64)


def _table() -> Bytes8:
    """u8 [256, 3]: index = heat level * GREYS + grey level."""
    grey = np.linspace(_DARK, _LIGHT, GREYS).reshape(1, GREYS, 1)
    heat = np.linspace(0, 1, HEATS)
    colours = interpolated(heat, _STOPS, _COLOURS).reshape(HEATS, 1, 3)
    opacity = np.minimum(1, heat * _OPACITY).reshape(HEATS, 1, 1)
    mixed = grey * (1 - opacity) + colours * opacity  # [HEATS, GREYS, 3]
    table = np.full((256, 3), 128, np.uint8)
    table[:_NEGLIGIBLE] = mixed.reshape(-1, 3).round()
    return table


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
