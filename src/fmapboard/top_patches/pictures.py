"""What a search of patches writes: pictures with a row of crops per channel, and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import (
    Bytes8,
    Crop,
    Floats,
    LayerPatches,
    LoggedStep,
    Picture,
    TabRecord,
    TaggedPictures,
)
from fmapboard.top_patches import small_text

CHANNELS = 64
"""Channels per picture; a layer with more has several pictures."""

PALE = 165
"""Grey value; the number of a channel is pale if its largest value is not above 0."""

OUTSIDE = ((236, 236, 236), (150, 190, 235))
"""Colours of the diagonal stripes beyond the edge of the image, which no photograph has."""
_STRIPE = 3
"""Width of a stripe in px, across."""

_SMALL = 64
"""Longest side in px up to which cells are enlarged by an integer factor."""
_GAP = 6
_MARK = ((0, 0, 0), (255, 221, 0))


class RowLayout(NamedTuple):
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
        height = 1
        width = 1
        for crop in chain.from_iterable(patches.crops):
            height = max(height, crop.pixels.shape[0])
            width = max(width, crop.pixels.shape[1])
        factor = max(1, _SMALL // max(height, width))
        height *= factor
        width *= factor
        last_channel = max(len(patches.crops) - 1, 0)
        return cls(
            cell=(height, width),
            factor=factor,
            left=small_text.text_width(str(last_channel)) + 2 * _GAP,
            top=_GAP,
            across=width + _GAP,
            down=height + small_text.HEIGHT + 2 * _GAP,
        )


def draw_patches(patches: LayerPatches) -> tuple[Picture, ...]:
    """Draw all crops of a layer in RGB, up to 64 channels per picture.

    Each row begins with the number of the channel; the value is below each crop. A field that is
    cut off at the edge of the image lies in its cell as it does over the edge. Where the field is
    more than half of the image, a square marks the place in the image that corresponds to the
    position in the map.
    """
    layout = RowLayout.of(patches)
    pictures = []
    for first in range(0, len(patches.crops), CHANNELS):
        rows = patches.crops[first : first + CHANNELS]
        page = _page(rows, first, patches.k, layout)
        pictures.append(Picture(page))
    return tuple(pictures)


def _page(rows: Sequence[Sequence[Crop]], first: int, k: int, layout: RowLayout) -> Bytes8:
    height = layout.top + len(rows) * layout.down
    width = layout.left + k * layout.across
    page = small_text.blank_page(height, width)
    cell_height, cell_width = layout.cell
    for row, crops in enumerate(rows):
        top = layout.top + row * layout.down
        bottom = top + cell_height
        ink = small_text.INK if is_excited(crops) else PALE
        middle = top + cell_height // 2
        small_text.write(page, str(first + row), middle - 3, _GAP, ink)
        for column, crop in enumerate(crops):
            left = layout.left + column * layout.across
            right = left + cell_width
            page[top:bottom, left:right] = _cell(crop, layout)
            text = number_that_fits(crop.value, cell_width)
            small_text.write(page, text, bottom + _GAP // 2, left)
    return page


def _cell(crop: Crop, layout: RowLayout) -> Bytes8:
    """A crop at its place in a cell, u8 [H, W, 3]."""
    cell = outside(*layout.cell)
    pixels = crop.pixels.repeat(layout.factor, 0).repeat(layout.factor, 1)
    height, width, _ = pixels.shape
    cell_height, cell_width = layout.cell
    field_top, field_left, field_bottom, field_right = crop.field
    image_height, image_width = crop.size
    top = _before(field_top, field_bottom, image_height, cell_height - height)
    left = _before(field_left, field_right, image_width, cell_width - width)
    cell[top : top + height, left : left + width] = pixels
    if crop.spot is not None and _is_large(crop):
        scale = layout.factor / crop.block
        y, x = crop.spot
        row = top + int((y - field_top) * scale)
        column = left + int((x - field_left) * scale)
        _mark(cell, row, column)
    return cell


def outside(height: int, width: int) -> Bytes8:
    """Diagonal stripes, u8 [height, width, 3]: where there is no image, only the padding."""
    y, x = np.ogrid[:height, :width]
    stripe = (y + x) // _STRIPE % 2
    colours = np.array(OUTSIDE, np.uint8)
    pixels: Bytes8 = colours[stripe]
    return pixels


def is_excited(crops: Sequence[Crop]) -> bool:
    """True if the largest value of a channel is above 0."""
    return bool(crops) and crops[0].value > 0


def _is_large(crop: Crop) -> bool:
    """True if the field is more than half of the image."""
    top, left, bottom, right = crop.field
    height, width = crop.size
    field = (bottom - top) * (right - left)
    image = height * width
    return 2 * field > image


def _before(start: int, end: int, side: int, free: int) -> int:
    """How much of the free part of a cell comes before a field, so that it is outside the image."""
    begins_inside = start > 0
    ends_inside = end < side
    if begins_inside == ends_inside:
        return free // 2
    return free if ends_inside else 0


def _mark(cell: Bytes8, y: int, x: int) -> None:
    """A square around a point, black and yellow, at most 4 px from it."""
    height, width, _ = cell.shape
    rows, columns = np.ogrid[:height, :width]
    distances = np.maximum(np.abs(rows - y), np.abs(columns - x))
    for distance, colour in zip((4, 3), _MARK, strict=True):
        cell[distances == distance] = colour


def number_that_fits(value: float, most: int) -> str:
    """A number with up to four significant digits, as far as it fits into ``most`` px.

    Example:
        >>> number_that_fits(-0.123456, 60), number_that_fits(-0.123456, 24)
        ('-0.1235', '-0.12')
    """
    for digits in (4, 3, 2, 1):
        text = f"{value:.{digits}g}"
        if small_text.text_width(text) <= most:
            break
    return text


def patches_step(
    layers: Iterable[LayerPatches], step: int, wall_time: float, *, one_per_image: bool
) -> LoggedStep:
    """The pictures and records of all layers.

    Args:
        layers: In call order.
        step: Number of the step: how far the network was trained.
        wall_time: Time in seconds since the epoch.
        one_per_image: A channel has at most one crop of an image.
    """
    pictures = []
    records = []
    for patches in layers:
        if patches.crops:
            pictures.append(_pictures(patches, one_per_image))
            records.append(_record(patches, step, one_per_image))
    return LoggedStep(step, wall_time, pictures=tuple(pictures), records=tuple(records))


def patches_tag(patches: LayerPatches) -> str:
    """The tag of a layer's pictures of patches."""
    call = patches.layer_call
    return tags.image("patches", call.group, call.label)


def _pictures(patches: LayerPatches, one_per_image: bool) -> TaggedPictures:
    tag = patches_tag(patches)
    text = _description(patches, one_per_image)
    pictures = draw_patches(patches)
    return TaggedPictures(tag, "patches", pictures, patches.layer_call, text)


def _description(patches: LayerPatches, one_per_image: bool) -> str:
    height, width = patches.cell
    per_image = ", at most one per image" if one_per_image else ""
    lines = [
        f"The parts of {patches.images} images that excite each channel of "
        f"`{patches.layer_call.label}` most, best first{per_image}; below each, the value.",
        f"Each is the receptive field of one position, up to {height}×{width} px. Stripes: "
        "outside of the image. A square marks the position where the field is most of the image.",
    ]
    pale = sum(not is_excited(row) for row in patches.crops)
    if pale:
        lines.append(
            f"{pale} of {len(patches.crops)} channels have no value above 0 and are excited by "
            "none of these images: their numbers are pale."
        )
    if patches.lost_at:
        lines.append(f"The field counts as the whole image because of {patches.lost_at}.")
    if len(patches.crops) < patches.channels:
        lines.append(f"The first {len(patches.crops)} of {patches.channels} channels.")
    if len(patches.crops) > CHANNELS:
        lines.append(f"Each picture shows {CHANNELS} channels.")
    return "\n\n".join(lines)


def _record(patches: LayerPatches, step: int, one_per_image: bool) -> TabRecord:
    call = patches.layer_call
    layout = RowLayout.of(patches)
    crops = list(chain.from_iterable(patches.crops))
    names = {crop.image: crop.name for crop in crops}
    images = sorted(names)
    numbers = {image: number for number, image in enumerate(images)}
    picture = {"tag": patches_tag(patches), "rows": CHANNELS, **layout._asdict()}
    header = {
        "layer": call.layer,
        "type": call.type,
        "call": call.call,
        "position": call.position,
        "step": step,
        "channels": patches.channels,
        "searched": len(patches.crops),
        "k": patches.k,
        "one_per_image": one_per_image,
        "images": patches.images,
        "names": [names[image] for image in images],
        "lost_at": patches.lost_at,
        "picture": picture,
    }
    arrays: dict[str, Floats] = {
        "value": _table(patches, 1, lambda crop: [crop.value]),
        "image": _table(patches, 1, lambda crop: [numbers[crop.image]]),
        "field": _table(patches, 4, lambda crop: crop.field),
        "size": _table(patches, 2, lambda crop: crop.size),
    }
    axes = max((len(crop.position) for crop in crops), default=0)
    if axes:
        arrays["place"] = _table(patches, axes, lambda crop: crop.position)
    if any(patches.nan):
        arrays["nan"] = np.array(patches.nan, np.float32)
    return TabRecord(f"{tags.PATCHES}{call.label}", pack(header, arrays))


def _table(patches: LayerPatches, width: int, numbers: Callable[[Crop], Sequence[float]]) -> Floats:
    """Numbers of each crop, f32 [searched, k, width] or for 1 [searched, k]; NaN for no crop."""
    shape = (len(patches.crops), patches.k, width)
    table = np.full(shape, np.nan, np.float32)
    for channel, crops in enumerate(patches.crops):
        for rank, crop in enumerate(crops):
            table[channel, rank] = numbers(crop)
    return table[..., 0] if width == 1 else table
