"""Write the images of one run, in order, in a worker thread beside the forward passes.

The thread takes one recorded image after the other, from its first map to its last file. The PNGs
of an image, most of the work, are encoded in parallel, and all of them before anything is written.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from fmapboard.capture.step_parts import PendingStep
from fmapboard.records import LoggedStep, Picture, TaggedPictures
from fmapboard.render import png
from fmapboard.render.grid import enlargement
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.worker import Worker

MAX_WAITING_BYTES = 64 * 2**20
"""A few images of a large network: what waits longer than it must only takes fresh memory."""

THREADS = min(8, os.cpu_count() or 1)
"""Threads that encode PNGs."""


@dataclass(frozen=True, slots=True)
class WrittenImage:
    """One image's step and PNG files, all of it written.

    ``files``: label of a layer call -> the files of its maps.
    """

    step: LoggedStep
    files: dict[str, list[Path]]


class ImageWriter:
    """Composes and writes the images of one run; used for one run.

    Args:
        compose: called in the worker thread.
        board: where steps go for TensorBoard, or None; stays open.
        folders: where the PNG files of each image go, by its step; None for nowhere.
        max_bytes: bound of the recorded images that wait for the worker thread; one image alone
            may be larger.
    """

    def __init__(
        self,
        compose: SummaryBuilder,
        board: Writer | None,
        folders: list[Path | None],
        *,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._compose, self._board, self._folders = compose, board, folders
        self._worker = Worker(self._work, self._failed, max_bytes=max_bytes, low_priority=False)
        self._encoders = ThreadPoolExecutor(THREADS, thread_name_prefix="fmapboard-png")
        self._results: SimpleQueue[WrittenImage | Exception] = SimpleQueue()
        self._waiting = 0
        self._given_up = False

    def write(self, images: Iterable[PendingStep]) -> Generator[WrittenImage, None, None]:
        """Yield each image in order, once all of it is written.

        An error in making ``images`` is raised when those before it are written. When writing
        fails, and on KeyboardInterrupt, what waits is given up; an image that went to TensorBoard
        has all its files.

        Raises:
            WriteError: an image could not be written.
        """
        # The worker is a daemon thread: where a second Ctrl-C cuts `_close` short, the interpreter
        # still waits for the image that is being written.
        atexit.register(self._close)
        try:
            error = yield from self._put(images)
            while self._waiting:
                yield self._result()
            if error is not None:
                raise error
        finally:
            self._close()

    def _put(
        self, images: Iterable[PendingStep]
    ) -> Generator[WrittenImage, None, Exception | None]:
        """Queue the images, and yield what is written meanwhile; the error in making them."""
        recorded = iter(images)
        while True:
            try:
                image = next(recorded, None)
            except Exception as error:
                return error
            if image is None:
                return None
            self._worker.put(image, image.nbytes)
            self._waiting += 1
            while not self._results.empty():
                yield self._result()

    def _result(self) -> WrittenImage:
        """The next image that is written; waits for it."""
        result = self._results.get()
        self._waiting -= 1
        if isinstance(result, Exception):
            raise result
        return result

    def _close(self) -> None:
        self._given_up = True
        self._worker.close()
        self._encoders.shutdown()
        atexit.unregister(self._close)

    def _work(self, image: PendingStep) -> None:
        if not self._given_up:
            step = self._compose(image.to_host())
            self._results.put(WrittenImage(step, self._store(step)))

    def _failed(self, error: Exception) -> None:
        self._given_up = True
        self._results.put(error)

    def _store(self, step: LoggedStep) -> dict[str, list[Path]]:
        """Write the step for TensorBoard and its PNG files, once all of it is encoded."""
        folder = self._folders[step.step]
        encode = partial(_encoded, for_board=self._board is not None, for_folder=folder is not None)
        pictures = list(self._encoders.map(encode, step.pictures))
        if self._board is not None:
            self._board.write(replace(step, pictures=tuple(tagged for tagged, _ in pictures)))
        if folder is None:
            return {}
        return _write_files(folder, replace(step, pictures=tuple(file for _, file in pictures)))


def _encoded(
    tagged: TaggedPictures, *, for_board: bool, for_folder: bool
) -> tuple[TaggedPictures, TaggedPictures]:
    """The picture with its PNGs: as TensorBoard gets them, and as `FolderWriter` stores them."""
    board = _mapped(png.encoded, tagged) if for_board else tagged
    return board, _mapped(_enlarged, board) if for_folder else board


def _mapped(encode: Callable[[Picture], Picture], tagged: TaggedPictures) -> TaggedPictures:
    return replace(tagged, samples=tuple(map(encode, tagged.samples)))


def _enlarged(picture: Picture) -> png.Encoded:
    """The raster with the PNG of its enlarged maps."""
    factor, (height, width) = enlargement(picture), picture.tile
    # The tile is that of the PNG: `FolderWriter` finds nothing left to enlarge.
    tile = height * factor, width * factor
    return png.Encoded(picture.pixels, picture.palette, tile, data=png.encode(picture, factor))


def _write_files(folder: Path, step: LoggedStep) -> dict[str, list[Path]]:
    """Write the PNG files; label of a layer call -> the files of its maps."""
    writer = FolderWriter(folder)
    writer.write(step)
    maps = [tagged for tagged in step.pictures if tagged.kind == "feature_maps"]
    return {p.layer_call.label: writer.files[p.tag] for p in maps if p.layer_call is not None}
