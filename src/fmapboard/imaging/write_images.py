"""Write recorded images in order, in a worker thread that runs while the model computes the next.

The thread finishes all files of one image before it starts the next. Most of the work is encoding
PNGs: those of one image are encoded in parallel, and all of them before any file is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fmapboard.errors import writing
from fmapboard.imaging.labels import labelled
from fmapboard.imaging.read_images import prefetched
from fmapboard.records import LoggedStep, Picture, TaggedPictures
from fmapboard.render import png
from fmapboard.render.grid import enlargement
from fmapboard.session.step import PendingStep
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.remote import RemoteDirectory, make_directory

MAX_WAITING_BYTES = 64 * 2**20
"""Limit for the recorded images that wait in the queue: a few images of a large network."""

_MAX_WAITING = 8
"""Maximum number of images in the queue, and of those that are written and not yet yielded."""

THREADS = min(8, os.cpu_count() or 1)
"""Threads that encode PNGs."""


@dataclass(frozen=True, slots=True)
class WrittenImage:
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
