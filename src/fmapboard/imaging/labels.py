"""Labels for pictures that are shown to others, apart from drawing them: names and numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fmapboard.formats import tags
from fmapboard.records import Attribution, Bytes8, LoggedStep, Picture, TaggedPictures
from fmapboard.render.grid import KERNEL_PADDING, PADDING, columns, enlarge
from fmapboard.top_patches.small_text import HEIGHT, INK, blank_page, text_width, write

_FRAME = 190
"""Grey value."""
_GAP = 4
"""Distance in px between tiles, and between a tile and its number."""


def labelled(step: LoggedStep) -> LoggedStep:
    """A step whose pictures have a line with the layer's name; channels and kernels, their numbers.

    The pictures are RGB. Tiles have the size that they have in files without labels. Pictures of
    the network's input are not changed.

    Args:
        step: All channels of its maps are drawn.
    """
    channels = {
        one.layer_call.label: one.statistics.minimum.size
        for one in step.statistics
        if one.statistics is not None
    }
    scores = {tags.attribution(a.layer_call.label, a.sample): _score(a) for a in step.attributions}
    pictures = (
        _labelled(one, channels, scores.get(one.tag.partition("/")[2], "")) for one in step.pictures
    )
    return replace(step, pictures=tuple(pictures))


def _score(found: Attribution) -> str:
    value = "" if found.value is None else f", score {found.value:.4g}"
    return f"{found.layer_call.label}  {found.score}{value}"


def _labelled(tagged: TaggedPictures, channels: dict[str, int], score: str) -> TaggedPictures:
    call = tagged.layer_call
    if tagged.kind == "network_input":
        return tagged
    name = score or tagged.tag.partition("/")[2]
    if call is not None:
        name = f"{call.label}  {call.group}"
    title = name if tagged.kind == "feature_maps" else f"{tagged.kind}: {name}"
    count = 0
    if call is not None and tagged.kind == "feature_maps":
        count = channels.get(call.label, 0)
    elif call is not None and tagged.kind == "kernels" and tagged.samples[0].palette is None:
        count = (call.kernel_shape or (0,))[0]  # a tile in RGB per kernel
    padding = PADDING if tagged.kind == "feature_maps" else KERNEL_PADDING
    if tagged.kind == "kernels" and tagged.samples[0].palette is not None:
        if call is not None and len(call.kernel_shape or ()) > 2:
            is_rows = tagged.layout == "rows"
            title += "  outputs down, inputs across" if is_rows else "  inputs down, outputs across"
        drawn = [_with_matrix_numbers(one, KERNEL_PADDING) for one in tagged.samples]
    elif not count:
        drawn = [_rgb(enlarge(one)) for one in tagged.samples]
    elif tagged.layout == "rows":
        drawn = [_with_matrix_numbers(one, 0) for one in tagged.samples]
    else:
        drawn = [_with_tile_numbers(one, count, padding) for one in tagged.samples]
    return replace(tagged, samples=tuple(Picture(_below(title, pixels)) for pixels in drawn))


def _with_tile_numbers(picture: Picture, count: int, padding: int) -> Bytes8:
    """The tiles with their numbers above, u8 [H, W, 3]."""
    pixels = _rgb(enlarge(picture))
    factor = pixels.shape[1] // picture.pixels.shape[1]
    height, width = picture.tile[0] * factor, picture.tile[1] * factor
    per_row = min(columns(count), count)
    pad = padding * factor if count > 1 else 0
    across = max(width, text_width(str(count - 1))) + _GAP
    down = HEIGHT + _GAP + height + 2 * _GAP
    rows = -(-count // per_row)
    page = blank_page(rows * down, per_row * across + 2)
    for number in range(count):
        row, column = divmod(number, per_row)
        top, left = row * down, column * across
        write(page, str(number), top, left)
        y, x = pad + row * (height + pad), pad + column * (width + pad)
        place = page[top + HEIGHT + _GAP - 1 :, left:]
        place[: height + 2, : width + 2] = _FRAME  # without it, a white tile would not be seen
        place[1 : height + 1, 1 : width + 1] = pixels[y : y + height, x : x + width]
    return page


def _with_matrix_numbers(picture: Picture, padding: int) -> Bytes8:
    """A matrix of tiles with the numbers of its rows to the left and of its columns above.

    Where a number has no space, every second one is written, or every third one, and so on. A
    sequence is a matrix without padding, of one column, which has no number.

    Returns:
        u8 [H, W, 3]; a single row or column of kernels has no number.
    """
    pixels = _rgb(enlarge(picture))
    height, width = pixels.shape[:2]
    factor = width // picture.pixels.shape[1]
    pad = padding * factor
    down, across = (side * factor + pad for side in picture.tile)
    rows, per_row = max(1, (height - pad) // down), max(1, (width - pad) // across)
    wide = text_width(str(per_row - 1))
    left, top = text_width(str(rows - 1)) + _GAP, HEIGHT + _GAP if padding else 0
    page = blank_page(
        top + max(height, HEIGHT), left + max(width, pad + (per_row - 1) * across + wide)
    )
    page[top : top + height, left : left + width] = pixels
    if rows > 1 or not padding:
        for row in range(0, rows, -(-(HEIGHT + 2) // down)):
            write(page, str(row), top + pad + row * down, 0)
    if per_row > 1:
        for column in range(0, per_row, -(-(wide + _GAP) // across)):
            write(page, str(column), 0, left + pad + column * across)
    return page


def _below(title: str, pixels: Bytes8) -> Bytes8:
    """The pixels below a line of text, with a margin."""
    font = ImageFont.load_default()
    text = title.encode("latin-1", "backslashreplace").decode("latin-1")  # what the font has
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    line = bottom - top + 2 * _GAP
    height, width = pixels.shape[:2]
    page = blank_page(line + height + _GAP, max(right - left, width) + 2 * _GAP)
    drawn = Image.fromarray(page)
    ImageDraw.Draw(drawn).text((_GAP - left, _GAP - top), text, fill=(INK,) * 3, font=font)
    page = np.array(drawn)
    page[line : line + height, _GAP : _GAP + width] = pixels
    return page


def _rgb(picture: Picture) -> Bytes8:
    pixels = picture.colours
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, -1)
