"""Write recorded images in order, in a worker thread that runs while the model computes the next.

The thread finishes all files of one image before it starts the next. Most of the work is encoding
PNGs: those of one image are encoded in parallel, and all of them before any file is written.
PNG files may bear labels: names and numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fmapboard.errors import writing
from fmapboard.formats import tags
from fmapboard.imaging.read_images import prefetched
from fmapboard.records import Attribution, Bytes8, LoggedStep, Picture, TaggedPictures
from fmapboard.render import png
from fmapboard.render.grid import KERNEL_PADDING, PADDING, columns, enlarge, enlargement
from fmapboard.session.step import PendingStep
from fmapboard.summary.build import SummaryBuilder
from fmapboard.top_patches.small_text import HEIGHT, INK, blank_page, text_width, write
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.remote import RemoteDirectory, make_directory

MAX_WAITING_BYTES = 64 * 2**20
"""Limit for the recorded images that wait in the queue: a few images of a large network."""

_MAX_WAITING = 8
"""Maximum number of images in the queue, and of those that are written and not yet yielded."""

THREADS = min(8, os.cpu_count() or 1)
"""Threads that encode PNGs."""


class WrittenImage(NamedTuple):
    """An image whose step and PNG files have been written."""

    step: LoggedStep
    files: dict[str, list[Path]]
    """Label of a layer call -> the PNG files of its maps."""
    replaced: int = 0
    """Number of files from before that were overwritten."""

    @property
    def score(self) -> tuple[str, float] | None:
        """Name and value of the score whose attribution was drawn; None without attribution."""
        scores = ((one.score, one.value) for one in self.step.attributions)
        return next(((name, value) for name, value in scores if value is not None), None)


class ImageWriter:
    """Builds summaries of recorded images and writes them; an instance serves a single run.

    Args:
        compose: turns a recorded image into a summary; called in the worker thread.
        board: writes the steps for TensorBoard, or None; the caller closes it.
        folders: the folder for each image's PNG files, or None to write none; each is asked for
            when its image is written.
        labels: PNG files bear the layer's name and the channels' numbers.
    """

    def __init__(
        self,
        compose: SummaryBuilder,
        board: Writer | None,
        folders: Iterable[Path | None],
        *,
        labels: bool = False,
    ) -> None:
        self._compose, self._board, self._labels = compose, board, labels
        self._folders = iter(folders)
        self._encoders = ThreadPoolExecutor(THREADS, thread_name_prefix="fmapboard-png")
        self._given_up = False

    def write(self, images: Iterable[PendingStep]) -> Generator[WrittenImage, None, None]:
        """Yield each image, in order, after all of its files are written.

        If ``images`` raises an error, the images before it are still written, then it is raised.
        If writing fails, or on KeyboardInterrupt, the queued images are dropped; an image that was
        written for TensorBoard always has all its PNG files.

        Raises:
            WriteError: an image could not be written.
        """
        every, least = _with_error(images), MAX_WAITING_BYTES // _MAX_WAITING
        written = prefetched(
            self._written, every, ahead=MAX_WAITING_BYTES, threads=1,
            size=lambda image: least + getattr(image, "nbytes", 0),
        )  # fmt: skip
        try:
            yield from written
        finally:
            written.close()
            self._encoders.shutdown()

    def _written(self, image: PendingStep | Exception) -> WrittenImage:
        """Write an image, in the worker thread; after an error, no other one."""
        try:
            if self._given_up:
                raise CancelledError
            if isinstance(image, Exception):
                raise image
            return self._store(self._compose(image.to_host()), next(self._folders))
        except Exception:
            self._given_up = True
            raise

    def _store(self, step: LoggedStep, folder: Path | None) -> WrittenImage:
        """Encode all pictures, then write the step for TensorBoard and the PNG files."""
        shown, in_files = step.pictures, step.pictures
        if self._board is not None:
            shown = tuple(self._encoders.map(partial(_mapped, png.encoded), shown))
        if folder is not None:
            in_files = labelled(step).pictures if self._labels else shown
            in_files = tuple(self._encoders.map(partial(_mapped, _enlarged), in_files))
        if self._board is not None:
            self._board.write(replace(step, pictures=shown))
        if folder is None:
            return WrittenImage(step, {})
        writer = FolderWriter(folder)
        writer.write(replace(step, pictures=in_files))
        maps = [tagged for tagged in in_files if tagged.kind == "feature_maps"]
        files = {p.layer_call.label: writer.files[p.tag] for p in maps if p.layer_call is not None}
        return WrittenImage(step, files, writer.replaced)


def _with_error(images: Iterable[PendingStep]) -> Iterator[PendingStep | Exception]:
    """The images, and the error that ends them, which waits its turn in the queue like an image."""
    try:
        yield from images
    except Exception as error:
        yield error


def _mapped(encode: Callable[[Picture], Picture], tagged: TaggedPictures) -> TaggedPictures:
    return replace(tagged, samples=tuple(map(encode, tagged.samples)))


def _enlarged(picture: Picture) -> Picture:
    """The picture with the PNG of its enlarged maps."""
    factor, (height, width) = enlargement(picture), picture.tile
    # The tile size is that of the enlarged PNG, so that `FolderWriter` does not enlarge it again.
    tile = height * factor, width * factor
    return replace(picture, tile=tile, png=png.encode(picture, factor))


def new_directory(first: Path) -> Path:
    """Create the directory ``first``; if that exists and is not empty, ``first-2`` and so on.

    Raises:
        WriteError: the directory cannot be created.
    """
    path, number = first, 1
    with writing(f"to {first}"):
        while os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
            number += 1
            path = first.with_name(f"{first.name}-{number}")
    make_directory(path)
    return path


def places(
    command: str, log_dir: Path | RemoteDirectory | None, out: Path | None
) -> tuple[Path | RemoteDirectory | None, Path | None]:
    """The run directory and the folder of PNG files: new ones below ``runs`` if none is given."""
    if log_dir is not None or out is not None:
        return log_dir, out
    new = new_directory(Path("runs", command))
    return new, new / "png"


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
    sides = max(right - left, width) + 2 * _GAP, line + height + _GAP
    page = Image.new("RGB", sides, "white")
    page.paste(Image.fromarray(pixels), (_GAP, line))
    ImageDraw.Draw(page).text((_GAP - left, _GAP - top), text, (INK,) * 3, font)
    return np.asarray(page)


def _rgb(picture: Picture) -> Bytes8:
    return np.asarray(Image.fromarray(picture.colours).convert("RGB"))
