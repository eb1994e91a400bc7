"""Pictures for files that are shown to others: with the layer's name and the channels' numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fmapboard import tags
from fmapboard.records import Attribution, Bytes8, LoggedStep, Picture, TaggedPictures
from fmapboard.render import small_text
from fmapboard.render.grid import KERNEL_PADDING, PADDING, columns, enlarge

_BACKGROUND, _FRAME, _INK = 255, 190, 40
_GAP = 4
"""Distance in px between tiles, and between a tile and its number."""


def labelled(step: LoggedStep) -> LoggedStep:
    """A step whose pictures have a line with the layer's name; those of channels, their numbers.

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
    drawn = (
        _with_row_numbers(one, count)
        if tagged.layout == "rows"
        else _with_tile_numbers(one, count, padding)
        for one in tagged.samples
    )
    return replace(tagged, samples=tuple(Picture(_below(title, pixels)) for pixels in drawn))


def _with_tile_numbers(picture: Picture, count: int, padding: int) -> Bytes8:
    """The tiles with their numbers above, u8 [H, W, 3]; without numbers if ``count`` is 0."""
    pixels = _rgb(enlarge(picture))
    if not count:
        return pixels
    factor = pixels.shape[1] // picture.pixels.shape[1]
    height, width = picture.tile[0] * factor, picture.tile[1] * factor
    per_row = min(columns(count), count)
    pad = padding * factor if count > 1 else 0
    across = max(width, small_text.width(str(count - 1))) + _GAP
    down = small_text.HEIGHT + _GAP + height + 2 * _GAP
    rows = -(-count // per_row)
    page = _page(rows * down, per_row * across + 2)
    for number in range(count):
        row, column = divmod(number, per_row)
        top, left = row * down, column * across
        _write(page, str(number), top, left)
        y, x = pad + row * (height + pad), pad + column * (width + pad)
        place = page[top + small_text.HEIGHT + _GAP - 1 :, left:]
        place[: height + 2, : width + 2] = _FRAME  # without it, a white tile would not be seen
        place[1 : height + 1, 1 : width + 1] = pixels[y : y + height, x : x + width]
    return page


def _with_row_numbers(picture: Picture, count: int) -> Bytes8:
    """The rows of a sequence with the numbers of some to their left, u8 [H, W, 3]."""
    pixels = _rgb(enlarge(picture))
    if not count:
        return pixels
    height = pixels.shape[0] // count
    left = small_text.width(str(count - 1)) + _GAP
    page = _page(max(len(pixels), small_text.HEIGHT), left + pixels.shape[1])
    page[: len(pixels), left:] = pixels
    every = -(-(small_text.HEIGHT + 2) // max(1, height))
    for number in range(0, count, every):
        _write(page, str(number), number * height, 0)
    return page


def _below(title: str, pixels: Bytes8) -> Bytes8:
    """The pixels below a line of text, with a margin."""
    font = ImageFont.load_default()
    text = title.encode("latin-1", "backslashreplace").decode("latin-1")  # what the font has
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    line = bottom - top + 2 * _GAP
    height, width = pixels.shape[:2]
    page = _page(line + height + _GAP, max(right - left, width) + 2 * _GAP)
    drawn = Image.fromarray(page)
    ImageDraw.Draw(drawn).text((_GAP - left, _GAP - top), text, fill=(_INK,) * 3, font=font)
    page = np.array(drawn)
    page[line : line + height, _GAP : _GAP + width] = pixels
    return page


def _rgb(picture: Picture) -> Bytes8:
    if picture.palette is not None:
        coloured: Bytes8 = picture.palette[picture.pixels]
        return coloured
    pixels = picture.pixels
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, -1)


def _page(height: int, width: int) -> Bytes8:
    return np.full((height, width, 3), _BACKGROUND, np.uint8)


def _write(page: Bytes8, text: str, top: int, left: int) -> None:
    mask = small_text.mask(text)
    area = page[top:, left:][: mask.shape[0], : mask.shape[1]]
    area[mask[: area.shape[0], : area.shape[1]]] = _INK
