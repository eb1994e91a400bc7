"""Draw the crops that excite the channels of a layer most: one row per channel, best crop first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fmapboard.records import Bytes8, Crop, LayerPatches, Picture
from fmapboard.render import labels

CHANNELS = 64
"""Channels per picture; a layer with more has several pictures."""

BACKGROUND, INK, PALE = (255, 255, 255), (40, 40, 40), (165, 165, 165)
"""Colours; the number of a channel is pale if its largest value is not above 0."""

OUTSIDE = ((236, 236, 236), (150, 190, 235))
"""Colours of the diagonal stripes beyond the edge of the image, which no photograph has."""
_STRIPE = 3
"""Width of a stripe in px, across."""

_SMALL = 64
"""Longest side in px up to which cells are enlarged by an integer factor."""
_GAP = 6
_MARK = ((0, 0, 0), (255, 221, 0))


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the crops are in a picture; all in px.

    Attributes:
        cell: (height, width) of a crop's cell.
        factor: Side of the square that a pixel of a crop becomes.
        left: Left edge of the first cell.
        top: Top edge of the first row.
        across: Distance between the left edges of cells in a row.
        down: Distance between the top edges of rows.
    """

    cell: tuple[int, int]
    factor: int
    left: int
    top: int
    across: int
    down: int

    @classmethod
    def of(cls, patches: LayerPatches) -> RowLayout:
        """The layout of a layer's pictures."""
        shapes = [crop.pixels.shape for row in patches.crops for crop in row] or [(1, 1)]
        height, width = (max(shape[axis] for shape in shapes) for axis in (0, 1))
        factor = max(1, _SMALL // max(height, width))
        cell = (height * factor, width * factor)
        label = labels.text_width(str(max(len(patches.crops) - 1, 0)))
        left = label + 2 * _GAP
        below = labels.HEIGHT + 2 * _GAP
        return cls(cell, factor, left, _GAP, cell[1] + _GAP, cell[0] + below)


def draw_patches(patches: LayerPatches) -> tuple[Picture, ...]:
    """Draw all crops of a layer in RGB, up to 64 channels per picture.

    Each row begins with the number of the channel; the value is below each crop. A field that is
    cut off at the edge of the image lies in its cell as it does over the edge. Where the field is
    more than half of the image, a square marks the place in the image that corresponds to the
    position in the map.
    """
    layout = RowLayout.of(patches)
    return tuple(
        Picture(_page(patches.crops[first : first + CHANNELS], first, patches.k, layout))
        for first in range(0, len(patches.crops), CHANNELS)
    )


def _page(rows: Sequence[Sequence[Crop]], first: int, k: int, layout: RowLayout) -> Bytes8:
    height = layout.top + len(rows) * layout.down
    page = np.full((height, layout.left + k * layout.across, 3), BACKGROUND, np.uint8)
    for row, crops in enumerate(rows):
        top = layout.top + row * layout.down
        ink = INK if is_excited(crops) else PALE
        _write(page, str(first + row), top + layout.cell[0] // 2 - 3, _GAP, ink)
        for column, crop in enumerate(crops):
            left = layout.left + column * layout.across
            page[top:, left:][: layout.cell[0], : layout.cell[1]] = _cell(crop, layout)
            text = labels.number_that_fits(crop.value, layout.cell[1])
            _write(page, text, top + layout.cell[0] + _GAP // 2, left)
    return page


def _cell(crop: Crop, layout: RowLayout) -> Bytes8:
    """A crop at its place in a cell, u8 [H, W, 3]."""
    cell = outside(*layout.cell)
    pixels = crop.pixels.repeat(layout.factor, 0).repeat(layout.factor, 1)
    top, left = (
        _before(crop.field[axis], crop.field[axis + 2], crop.size[axis],
                layout.cell[axis] - pixels.shape[axis])
        for axis in (0, 1)
    )  # fmt: skip
    cell[top:, left:][: pixels.shape[0], : pixels.shape[1]] = pixels
    if crop.spot is not None and _is_large(crop):
        scale = layout.factor / crop.block
        y, x = (int((crop.spot[axis] - crop.field[axis]) * scale) for axis in (0, 1))
        _mark(cell, top + y, left + x)
    return cell


def outside(height: int, width: int) -> Bytes8:
    """Diagonal stripes, u8 [height, width, 3]: where there is no image, only the padding."""
    y, x = np.ogrid[:height, :width]
    stripes: Bytes8 = np.array(OUTSIDE, np.uint8)[(y + x) // _STRIPE % 2]
    return stripes


def is_excited(crops: Sequence[Crop]) -> bool:
    """True if the largest value of a channel is above 0."""
    return bool(crops) and crops[0].value > 0


def _is_large(crop: Crop) -> bool:
    """True if the field is more than half of the image."""
    top, left, bottom, right = crop.field
    return 2 * (bottom - top) * (right - left) > crop.size[0] * crop.size[1]


def _before(start: int, end: int, side: int, room: int) -> int:
    """How much of the free part of a cell comes before a field, so that it is outside the image."""
    if start <= 0 < side - end:
        return room
    return 0 if end >= side > start > 0 else room // 2


def _mark(cell: Bytes8, y: int, x: int) -> None:
    """A square around a point, black and yellow, at most 4 px from it."""
    for distance, colour in zip((4, 3), _MARK, strict=True):
        for py, px in _outline(distance):
            if 0 <= y + py < cell.shape[0] and 0 <= x + px < cell.shape[1]:
                cell[y + py, x + px] = colour


def _outline(distance: int) -> Iterator[tuple[int, int]]:
    for along in range(-distance, distance + 1):
        yield from ((-distance, along), (distance, along), (along, -distance), (along, distance))


def _write(page: Bytes8, text: str, top: int, left: int, ink: tuple[int, int, int] = INK) -> None:
    drawn = labels.text_mask(text)
    area = page[top:, left:][: drawn.shape[0], : drawn.shape[1]]
    area[drawn[: area.shape[0], : area.shape[1]]] = ink
