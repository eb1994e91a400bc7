"""Recorded images become pictures and files in threads, beside the forward passes.

One thread composes and writes for TensorBoard, a second one writes PNG files; both in the images'
order. What waits for them is bounded in bytes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fmapboard.compose import Composer
from fmapboard.records import LoggedStep
from fmapboard.separate import Recorded
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter

MAX_WAITING_BYTES = 64 * 2**20
"""A few images of a large network: what waits longer than it must only takes fresh memory."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One image's step and PNG files, all of it written.

    ``files``: label of a site -> the files of its maps.
    """

    step: LoggedStep
    files: dict[str, list[Path]]


class Delivery:
    """Composes and writes the images of one run.

    Args:
        compose: used by one thread.
        board: where steps go for TensorBoard, or None; stays open.
        folders: where the PNG files of each image go, by its step; None for nowhere.
        max_bytes: `deliver` waits while more than this is recorded and not yet written; one
            image alone may be larger.
    """

    def __init__(
        self,
        compose: Composer,
        board: Writer | None,
        folders: list[Path | None],
        *,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._compose, self._board, self._folders = compose, board, folders
        self._max_bytes = max_bytes
        self._composing = ThreadPoolExecutor(1, thread_name_prefix="fmapboard-compose")
        self._filing = ThreadPoolExecutor(1, thread_name_prefix="fmapboard-files")
        self._sent: deque[tuple[int, Future[Delivered]]] = deque()
        self._broken = threading.Event()

    def deliver(self, images: Iterable[Recorded]) -> Generator[Delivered, None, None]:
        """Each image in order, once all of it is written.

        An error in making ``images`` is raised when those before it are written. When writing
        fails, and on KeyboardInterrupt, what waits to be composed is given up; an image that is
        composed already is written whole.

        Raises:
            WriteError: an image could not be written.
        """
        try:
            error = yield from self._deliver(iter(images))
            if error is not None:
                raise error
        finally:
            self._composing.shutdown(wait=True, cancel_futures=True)
            self._filing.shutdown(wait=True)

    def _deliver(self, images: Iterator[Recorded]) -> Generator[Delivered, None, Exception | None]:
        error = None
        while error is None:
            try:
                image = next(images, None)
            except Exception as failure:
                error = failure
                break
            if image is None:
                break
            self._send(image)
            yield from self._written(self._max_bytes)
        yield from self._written(0)
        return error

    def _send(self, image: Recorded) -> None:
        written: Future[Delivered] = Future()
        self._sent.append((image.nbytes, written))
        self._composing.submit(self._write, image, written)

    def _written(self, allowed: int) -> Iterator[Delivered]:
        """What is written already; and what must be, until no more bytes wait than allowed."""
        while self._sent:
            waiting, written = sum(size for size, _ in self._sent), self._sent[0][1]
            few = waiting <= allowed or (allowed and len(self._sent) == 1)
            if few and not written.done():
                return
            yield written.result()
            self._sent.popleft()

    def _write(self, image: Recorded, written: Future[Delivered]) -> None:
        """In the composing thread."""
        if self._broken.is_set():
            return
        try:
            step = self._compose(image.finish())
            if self._board is not None:
                self._board.write(step)
            self._filing.submit(self._file, step, written)
        except BaseException as error:
            self._broken.set()
            written.set_exception(error)

    def _file(self, step: LoggedStep, written: Future[Delivered]) -> None:
        """In the thread that writes files."""
        try:
            written.set_result(Delivered(step, write_files(self._folders[step.step], step)))
        except BaseException as error:
            self._broken.set()
            written.set_exception(error)


def write_files(folder: Path | None, step: LoggedStep) -> dict[str, list[Path]]:
    """Write the PNG files; label of a site -> the files of its maps."""
    if folder is None:
        return {}
    writer = FolderWriter(folder)
    writer.write(step)
    maps = [picture for picture in step.pictures if picture.role == "feature_maps"]
    return {p.site.label: writer.files[p.tag] for p in maps if p.site is not None}
