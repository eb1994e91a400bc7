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

from fmapboard.arithmetic import ceil_div
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
        for attribution in self.step.attributions:
            if attribution.value is not None:
                return attribution.score, attribution.value
        return None


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
        self._compose = compose
        self._board = board
        self._labels = labels
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
        least = MAX_WAITING_BYTES // _MAX_WAITING
        written = prefetched(
            self._written, _with_error(images), ahead=MAX_WAITING_BYTES, threads=1,
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
            step = self._compose(image.to_host())
            return self._store(step, next(self._folders))
        except Exception:
            self._given_up = True
            raise

    def _store(self, step: LoggedStep, folder: Path | None) -> WrittenImage:
        """Encode all pictures, then write the step for TensorBoard and the PNG files."""
        shown = step.pictures
        in_files = shown
        if self._board is not None:
            encode = partial(_mapped, png.encoded)
            shown = tuple(self._encoders.map(encode, shown))
        if folder is not None:
            in_files = labelled(step).pictures if self._labels else shown
            enlarge_all = partial(_mapped, _enlarged)
            in_files = tuple(self._encoders.map(enlarge_all, in_files))
        if self._board is not None:
            self._board.write(replace(step, pictures=shown))
        if folder is None:
            return WrittenImage(step, {})
        writer = FolderWriter(folder)
        writer.write(replace(step, pictures=in_files))
        files = {}
        for tagged in in_files:
            if tagged.kind == "feature_maps" and tagged.layer_call is not None:
                files[tagged.layer_call.label] = writer.files[tagged.tag]
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
    factor = enlargement(picture)
    height, width = picture.tile
    # The tile size is that of the enlarged PNG, so that `FolderWriter` does not enlarge it again.
    tile = (height * factor, width * factor)
    return replace(picture, tile=tile, png=png.encode(picture, factor))


def new_directory(first: Path) -> Path:
    """Create the directory ``first``; if that exists and is not empty, ``first-2`` and so on.

    Raises:
        WriteError: the directory cannot be created.
    """
    path = first
    number = 1
    with writing(f"to {first}"):
        while _is_taken(path):
            number += 1
            path = first.with_name(f"{first.name}-{number}")
    make_directory(path)
    return path


def _is_taken(path: Path) -> bool:
    """True for a folder that is not empty, and for anything else than a folder."""
    if path.is_dir():
        return any(path.iterdir())
    return os.path.lexists(path)


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
    channels = {}
    for measured in step.statistics:
        if measured.statistics is not None:
            channels[measured.layer_call.label] = measured.statistics.minimum.size
    scores = {}
    for found in step.attributions:
        name = tags.attribution(found.layer_call.label, found.sample)
        scores[name] = _score(found)
    pictures = []
    for tagged in step.pictures:
        _, _, name = tagged.tag.partition("/")
        pictures.append(_labelled(tagged, channels, scores.get(name, "")))
    return replace(step, pictures=tuple(pictures))


def _score(found: Attribution) -> str:
    value = "" if found.value is None else f", score {found.value:.4g}"
    return f"{found.layer_call.label}  {found.score}{value}"


def _labelled(tagged: TaggedPictures, channels: dict[str, int], score: str) -> TaggedPictures:
    if tagged.kind == "network_input":
        return tagged
    title = _title(tagged, score)
    is_matrix = _is_matrix(tagged)
    padding = PADDING if tagged.kind == "feature_maps" else KERNEL_PADDING
    count = _numbered_tiles(tagged, channels)
    samples = []
    for picture in tagged.samples:
        if is_matrix:
            pixels = _with_matrix_numbers(picture, KERNEL_PADDING)
        elif not count:
            pixels = _rgb(enlarge(picture))
        elif tagged.layout == "rows":
            pixels = _with_matrix_numbers(picture, 0)
        else:
            pixels = _with_tile_numbers(picture, count, padding)
        page = _below(title, pixels)
        samples.append(Picture(page))
    return replace(tagged, samples=tuple(samples))


def _is_matrix(tagged: TaggedPictures) -> bool:
    """True for kernels that are drawn one by one, with a row or column per output."""
    return tagged.kind == "kernels" and tagged.samples[0].palette is not None


def _title(tagged: TaggedPictures, score: str) -> str:
    """The line above a picture."""
    call = tagged.layer_call
    if call is not None:
        name = f"{call.label}  {call.group}"
    else:
        name = score or tagged.tag.partition("/")[2]
    if tagged.kind == "feature_maps":
        return name
    title = f"{tagged.kind}: {name}"
    if call is None or not _is_matrix(tagged):
        return title
    if call.kernel_shape is None or len(call.kernel_shape) <= 2:
        return title
    if tagged.layout == "rows":
        return f"{title}  outputs down, inputs across"
    return f"{title}  inputs down, outputs across"


def _numbered_tiles(tagged: TaggedPictures, channels: dict[str, int]) -> int:
    """How many tiles have a number: a channel each, or a kernel drawn in RGB."""
    call = tagged.layer_call
    if call is None:
        return 0
    if tagged.kind == "feature_maps":
        return channels.get(call.label, 0)
    if tagged.kind == "kernels" and call.kernel_shape:
        return call.kernel_shape[0]
    return 0


def _with_tile_numbers(picture: Picture, count: int, padding: int) -> Bytes8:
    """The tiles with their numbers above, u8 [H, W, 3]."""
    pixels = _rgb(enlarge(picture))
    factor = pixels.shape[1] // picture.pixels.shape[1]
    height, width = picture.tile
    height *= factor
    width *= factor
    per_row = min(columns(count), count)
    pad = padding * factor if count > 1 else 0
    number_width = text_width(str(count - 1))
    across = max(width, number_width) + _GAP
    down = HEIGHT + _GAP + height + 2 * _GAP
    rows = ceil_div(count, per_row)
    page = blank_page(rows * down, per_row * across + 2)
    for number in range(count):
        row, column = divmod(number, per_row)
        top = row * down
        left = column * across
        write(page, str(number), top, left)
        y = pad + row * (height + pad)
        x = pad + column * (width + pad)
        tile = pixels[y : y + height, x : x + width]
        place = page[top + HEIGHT + _GAP - 1 :, left:]
        place[: height + 2, : width + 2] = _FRAME  # without it, a white tile would not be seen
        place[1 : height + 1, 1 : width + 1] = tile
    return page


def _with_matrix_numbers(picture: Picture, padding: int) -> Bytes8:
    """A matrix of tiles with the numbers of its rows to the left and of its columns above.

    Where a number has no space, every second one is written, or every third one, and so on. A
    sequence is a matrix without padding, of one column, which has no number.

    Returns:
        u8 [H, W, 3]; a single row or column of kernels has no number.
    """
    pixels = _rgb(enlarge(picture))
    height, width, _ = pixels.shape
    factor = width // picture.pixels.shape[1]
    pad = padding * factor
    tile_height, tile_width = picture.tile
    down = tile_height * factor + pad
    across = tile_width * factor + pad
    rows = max(1, (height - pad) // down)
    per_row = max(1, (width - pad) // across)
    digits = text_width(str(per_row - 1))
    left = text_width(str(rows - 1)) + _GAP
    top = HEIGHT + _GAP if padding else 0
    last_number = pad + (per_row - 1) * across + digits  # where it ends
    page_height = top + max(height, HEIGHT)
    page_width = left + max(width, last_number)
    page = blank_page(page_height, page_width)
    page[top : top + height, left : left + width] = pixels
    if rows > 1 or not padding:
        stride = ceil_div(HEIGHT + 2, down)
        for row in range(0, rows, stride):
            y = top + pad + row * down
            write(page, str(row), y, 0)
    if per_row > 1:
        stride = ceil_div(digits + _GAP, across)
        for column in range(0, per_row, stride):
            x = left + pad + column * across
            write(page, str(column), 0, x)
    return page


def _below(title: str, pixels: Bytes8) -> Bytes8:
    """The pixels below a line of text, with a margin."""
    font = ImageFont.load_default()
    text = title.encode("latin-1", "backslashreplace").decode("latin-1")  # what the font has
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    line = bottom - top + 2 * _GAP
    height, width, _ = pixels.shape
    page_width = max(right - left, width) + 2 * _GAP
    page = Image.new("RGB", (page_width, line + height + _GAP), "white")
    picture = Image.fromarray(pixels)
    page.paste(picture, (_GAP, line))
    ink = (INK, INK, INK)
    draw = ImageDraw.Draw(page)
    draw.text((_GAP - left, _GAP - top), text, ink, font)
    return np.asarray(page)


def _rgb(picture: Picture) -> Bytes8:
    image = Image.fromarray(picture.colours)
    return np.asarray(image.convert("RGB"))
