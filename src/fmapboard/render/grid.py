"""Draw quantized planes as a grid of tiles, one tile per channel.

``[1, C, H, W]`` is drawn as C tiles in the layout of ``torchvision.utils.make_grid``, called on
``maps.transpose(0, 1)`` with ``nrow=int(sqrt(C))`` and ``padding=2``; by default each channel is
normalized on its own. A sequence ``[1, C, L]`` is drawn as one picture of C rows and L columns,
without padding.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fmapboard.arithmetic import ceil_div
from fmapboard.records import Bytes8, Floats, InputImage, Kernels, Picture, PixelMark, Planes
from fmapboard.render.palettes import LEVEL_OF_PIXEL, Palette, palette
from fmapboard.render.quantize import finite_extremes, mark

PADDING = 2
KERNEL_PADDING = 1
SMALL_TILE = 32
_ROW_HEIGHT = 4
_ROW_WIDTH = 2048
_CHANNEL = (-1, 1, 1)
"""Shape of one value per channel, to be combined with [C, H, W]."""


def columns(channels: int) -> int:
    """Number of tiles per row, ``int(sqrt(C))``."""
    return max(1, math.isqrt(channels))


def arrangement(planes: Planes) -> tuple[int, int]:
    """Number of tiles per row of the grid, and the padding around each tile in px."""
    if planes.layout == "rows":
        return 1, 0
    return columns(planes.pixels.shape[1]), PADDING


def draw_maps(
    planes: Planes,
    sample: int,
    colours: Palette,
    dead: npt.NDArray[np.bool_] | None = None,
    nrow: int | None = None,
) -> Picture:
    """Draw the grid of one sample's maps, or the rows of a sequence.

    In the grey palette, a picture without marks is 8-bit grey with the pixels of make_grid (black
    padding). Any other picture is palette-indexed; the last six palette entries are marks.

    Args:
        planes: The quantized maps.
        sample: Index of the drawn sample.
        colours: The palette.
        dead: bool [C], True for dead channels, drawn in the colour of ``PixelMark.DEAD``.
        nrow: Tiles per row of the grid; None for ``int(sqrt(C))``.
    """
    pixels = planes.pixels[sample]  # [C, H, W]
    is_flat = planes.flat[sample]  # [C]
    channels, height, width = pixels.shape
    tile = (height, width)
    is_dead = np.zeros_like(is_flat)
    if dead is not None:
        is_dead = dead[:channels]
    has_whole_marks = is_flat.any() or is_dead.any()
    has_marks = planes.marks is not None or has_whole_marks
    per_row, padding = arrangement(planes)
    if nrow is not None and planes.layout == "tiles":
        per_row = nrow
    if not has_marks and colours.name == "grey":
        laid_out = grid(pixels, per_row, padding, 0)
        return Picture(laid_out, tile=tile)
    indices = LEVEL_OF_PIXEL[pixels]  # [C, H, W]
    indices[is_flat] = PixelMark.CONSTANT
    indices[is_dead] = PixelMark.DEAD
    if planes.marks is not None:
        marks = planes.marks[sample]
        np.copyto(indices, marks, where=marks != 0)
    laid_out = grid(indices, per_row, padding, PixelMark.PADDING)
    return Picture(laid_out, colours.table, tile)


def grid(tiles: Bytes8, per_row: int, padding: int, fill: int) -> Bytes8:
    """Lay out tiles [C, H, W] or [C, H, W, 3] row by row, with padding around each.

    A single tile gets no padding, as in make_grid.

    Args:
        tiles: u8, all of one size.
        per_row: Number of tiles per row.
        padding: Width of the padding in px.
        fill: Pixel value of the padding.
    """
    count, height, width, *colour = tiles.shape
    if count == 1:
        only: Bytes8 = tiles[0]
        return only
    per_row = min(per_row, count)
    rows = ceil_div(count, per_row)
    down = height + padding
    right = width + padding
    whole_height = rows * down + padding
    whole_width = per_row * right + padding
    drawn = np.full((whole_height, whole_width, *colour), fill, np.uint8)
    for row in range(rows):
        first = row * per_row
        in_row = tiles[first : first + per_row]
        top = padding + row * down
        line = drawn[top : top + height, padding:]
        # Splitting an axis gives a view; each cell is a tile and the padding to its right.
        cells = line.reshape(height, per_row, right, *colour)
        filled = cells[:, : len(in_row), :width]
        filled[:] = in_row.swapaxes(0, 1)  # [h, per_row, w, ...]
    return drawn


def largest_magnitude(weight: Floats) -> float:
    """The largest finite magnitude of a weight; 0 if it has none."""
    return float(np.max(np.abs(weight), where=np.isfinite(weight), initial=0.0))


def draw_kernels(kernels: Kernels, most: int | None = None) -> tuple[Picture, float]:
    """Draw a convolution's weight.

    The weight of a 2-D or 3-D convolution with three inputs per group, such as a first layer's, is
    drawn as a row-by-row grid of RGB tiles if it is finite: mid-grey is 0 and brighter is positive
    in each colour channel. Any other weight is a matrix of tiles in the zero-centered palette, with
    one row per input and one column per output channel; 1-D kernels, drawn 1 px high, have one row
    per output and one column per input. All tiles share one scale.

    Args:
        kernels: The weight.
        most: Maximum number of outputs and inputs that are drawn; None draws all.

    Returns:
        The picture, and the largest finite magnitude, which is drawn in the strongest colour.
    """
    weight = kernels.cut(most).weight  # [out, in, h, w]
    finite = np.isfinite(weight)
    peak = largest_magnitude(weight)
    unit = weight / peak if peak else weight
    brightness = np.clip(unit * 0.5 + 0.5, 0, 1)
    scaled = brightness * 255
    scaled[~finite] = 0
    pixels = scaled.astype(np.uint8)
    height, width = weight.shape[2:]
    tile = (height, width)
    if kernels.is_of_colours and finite.all():
        tiles = pixels.transpose(0, 2, 3, 1)  # [out, h, w, 3]
        per_row = columns(len(tiles))
        laid_out = grid(tiles, per_row, KERNEL_PADDING, 0)
        return Picture(laid_out, tile=tile), peak
    indices = LEVEL_OF_PIXEL[pixels]
    marks = mark(weight)
    if marks is not None:
        np.copyto(indices, marks, where=marks != 0)
    if kernels.layout == "tiles":
        indices = indices.swapaxes(0, 1)  # [in, out, h, w]
    per_row = indices.shape[1]
    tiles = indices.reshape(-1, height, width)  # [in * out, h, w], or [out * in, 1, l]
    laid_out = grid(tiles, per_row, KERNEL_PADDING, PixelMark.PADDING)
    return Picture(laid_out, palette("signed").table, tile), peak


def draw_input_image(image: InputImage) -> tuple[Picture, str]:
    """Draw an input image of the network in RGB or grey.

    Values are de-normalized if mean and standard deviation are known, drawn unchanged if all are
    within 0…1, and otherwise stretched between their extremes. Non-finite pixels are drawn in mark
    colours.

    Returns:
        The picture, and a description of how the values were converted to pixels.
    """
    values = image.values.astype(np.float64)  # [C, H, W]
    lo, hi, is_finite = finite_extremes(values)
    known = values.copy()
    known[~np.isfinite(values)] = 0.0
    if image.normalization is not None:
        mean, std = image.normalization
        scale = np.reshape(std, _CHANNEL)
        shift = np.reshape(mean, _CHANNEL)
        known = known * scale + shift
        how = "de-normalized with the given mean and standard deviation"
    elif image.is_stretched(float(lo), float(hi)):
        span = hi - lo
        known = (known - lo) / span if hi > lo else np.zeros_like(known)
        how = f"stretched between its extremes {lo:.4g} and {hi:.4g}"
    else:
        how = "values 0…1, unchanged"
    scaled = np.clip(known, 0, 1) * 255
    pixels = np.round(scaled).astype(np.uint8)
    channels, height, width = pixels.shape
    if is_finite:
        interleaved = pixels.transpose(1, 2, 0)  # [H, W, C]
        shown = pixels[0] if channels == 1 else interleaved
        return Picture(np.ascontiguousarray(shown)), how
    colours = np.broadcast_to(pixels, (3, height, width))
    colour = colours.transpose(1, 2, 0).copy()  # [H, W, 3]
    table = palette("grey").table
    is_down = np.isneginf(values).any(0)  # [H, W]
    is_up = np.isposinf(values).any(0)
    is_nan = np.isnan(values).any(0)
    colour[is_down] = table[PixelMark.NEGATIVE_INFINITY]
    colour[is_up] = table[PixelMark.POSITIVE_INFINITY]
    colour[is_nan] = table[PixelMark.NAN]
    return Picture(colour), how


def enlargement(picture: Picture) -> int:
    """The integer factor that enlarges tiles to at least 32 px; 1 for larger ones.

    The rows of a sequence become at least 4 px high, or less if the picture would otherwise be
    wider than 2048 px.
    """
    side = max(picture.tile)
    factor = 1
    if 0 < side < SMALL_TILE:
        factor = ceil_div(SMALL_TILE, side)
    is_sequence = picture.tile == (1, picture.pixels.shape[1])
    if is_sequence:
        row_height = min(_ROW_HEIGHT, _ROW_WIDTH // side)
        return max(factor, row_height)
    return factor


def enlarge(picture: Picture) -> Picture:
    """Enlarge a picture by its ``enlargement``, with nearest-neighbour interpolation."""
    factor = enlargement(picture)
    rows = picture.pixels.repeat(factor, axis=0)
    pixels = rows.repeat(factor, axis=1)
    height, width = picture.tile
    tile = (height * factor, width * factor)
    return Picture(pixels, picture.palette, tile)
