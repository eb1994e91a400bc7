"""What a search of patches writes: pictures with a row of crops per channel, and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
        shapes = [crop.pixels.shape for row in patches.crops for crop in row] or [(1, 1)]
        height, width = (max(shape[axis] for shape in shapes) for axis in (0, 1))
        factor = max(1, _SMALL // max(height, width))
        cell = (height * factor, width * factor)
        label = small_text.text_width(str(max(len(patches.crops) - 1, 0)))
        left = label + 2 * _GAP
        below = small_text.HEIGHT + 2 * _GAP
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
    page = small_text.blank_page(height, layout.left + k * layout.across)
    for row, crops in enumerate(rows):
        top = layout.top + row * layout.down
        ink = small_text.INK if is_excited(crops) else PALE
        small_text.write(page, str(first + row), top + layout.cell[0] // 2 - 3, _GAP, ink)
        for column, crop in enumerate(crops):
            left = layout.left + column * layout.across
            page[top:, left:][: layout.cell[0], : layout.cell[1]] = _cell(crop, layout)
            text = number_that_fits(crop.value, layout.cell[1])
            small_text.write(page, text, top + layout.cell[0] + _GAP // 2, left)
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
    rows, columns = np.ogrid[: cell.shape[0], : cell.shape[1]]
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
    found = [one for one in layers if one.crops]
    return LoggedStep(
        step,
        wall_time,
        pictures=tuple(_pictures(one, one_per_image=one_per_image) for one in found),
        records=tuple(_record(one, step, one_per_image=one_per_image) for one in found),
    )


def patches_tag(patches: LayerPatches) -> str:
    """The tag of a layer's pictures of patches."""
    return tags.image("patches", patches.layer_call.group, patches.layer_call.label)


def _pictures(patches: LayerPatches, *, one_per_image: bool) -> TaggedPictures:
    call, text = patches.layer_call, _description(patches, one_per_image)
    return TaggedPictures(patches_tag(patches), "patches", draw_patches(patches), call, text)


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


def _record(patches: LayerPatches, step: int, *, one_per_image: bool) -> TabRecord:
    call, layout = patches.layer_call, RowLayout.of(patches)
    crops = [crop for row in patches.crops for crop in row]
    names = {crop.image: crop.name for crop in crops}
    numbers = {image: number for number, image in enumerate(sorted(names))}
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
        "names": [names[image] for image in sorted(names)],
        "lost_at": patches.lost_at,
        "picture": {"tag": patches_tag(patches), "rows": CHANNELS, **layout._asdict()},
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


def _table(patches: LayerPatches, width: int, of: Callable[[Crop], Sequence[float]]) -> Floats:
    """Numbers of each crop, f32 [searched, k, width] or for 1 [searched, k]; NaN for no crop."""
    found = np.full((len(patches.crops), patches.k, width), np.nan, np.float32)
    for row, crops in zip(found, patches.crops, strict=True):
        for cell, crop in zip(row, crops, strict=False):  # there may be fewer than k
            cell[:] = of(crop)
    return found[..., 0] if width == 1 else found
