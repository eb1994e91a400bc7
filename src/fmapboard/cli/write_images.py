"""Recorded images become pictures and files in threads, beside the forward passes.

Each image is one thread's from the first map to the last file. Threads take turns where order
matters, in composing and in writing for TensorBoard; scaling, compressing and writing PNG files,
nearly all of the work, they do side by side. What waits for them is bounded in bytes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fmapboard.records import LoggedStep
from fmapboard.render import png
from fmapboard.separate import Recorded
from fmapboard.summary.build import Composer
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter

MAX_WAITING_BYTES = 64 * 2**20
"""A few images of a large network: what waits longer than it must only takes fresh memory."""

THREADS = min(8, os.cpu_count() or 1)
"""That draw, compress and write."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One image's step and PNG files, all of it written.

    ``files``: label of a site -> the files of its maps.
    """

    step: LoggedStep
    files: dict[str, list[Path]]


class Turns:
    """Lets threads through one at a time, in the order of their numbers from 0."""

    def __init__(self) -> None:
        self._next, self._last = 0, sys.maxsize
        self._changed = threading.Condition()

    @contextmanager
    def __call__(self, number: int) -> Iterator[bool]:
        """Wait for the turn, which passes on at the end of the block; False: it never comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._next == number or number > self._last)
            comes = number <= self._last
        yield comes
        with self._changed:
            self._next += comes
            self._changed.notify_all()

    def end(self, last: int) -> None:
        """No turn comes after this one."""
        with self._changed:
            self._last = min(last, self._last)
            self._changed.notify_all()


class Door:
    """Lets threads in until it is shut."""

    def __init__(self) -> None:
        self._inside, self._is_shut = 0, False
        self._changed = threading.Condition()

    @contextmanager
    def __call__(self) -> Iterator[bool]:
        """Inside during the block; False: it is shut, stay outside."""
        with self._changed:
            is_in = not self._is_shut
            self._inside += is_in
        try:
            yield is_in
        finally:
            with self._changed:
                self._inside -= is_in
                self._changed.notify_all()

    def shut(self) -> None:
        """Let nobody in any more, and wait until all are out."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: self._inside == 0)


class Delivery:
    """Composes and writes the images of one run.

    Args:
        compose: used by one thread at a time.
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
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="fmapboard-write")
        self._composing, self._storing, self._count = Turns(), Turns(), 0
        self._door = Door()
        self._sent: deque[tuple[int, Future[Delivered]]] = deque()

    def deliver(self, images: Iterable[Recorded]) -> Generator[Delivered, None, None]:
        """Each image in order, once all of it is written.

        An error in making ``images`` is raised when those before it are written. When writing
        fails, and on KeyboardInterrupt, what waits is given up; an image that went to TensorBoard
        is written whole.

        Raises:
            WriteError: an image could not be written.
        """
        try:
            error = yield from self._deliver(iter(images))
            if error is not None:
                raise error
        finally:
            # The pool does not wait for a thread during whose start Ctrl-C was pressed.
            self._door.shut()
            self._pool.shutdown(wait=True, cancel_futures=True)

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
        self._pool.submit(self._write, self._count, image, written)
        self._count += 1

    def _written(self, allowed: int) -> Iterator[Delivered]:
        """What is written already; and what must be, until no more bytes wait than allowed."""
        while self._sent:
            waiting, written = sum(size for size, _ in self._sent), self._sent[0][1]
            few = waiting <= allowed or (allowed and len(self._sent) == 1)
            if few and not written.done():
                return
            yield written.result()
            self._sent.popleft()

    def _write(self, number: int, image: Recorded, written: Future[Delivered]) -> None:
        """The way of one image, in a thread of the pool."""
        with self._door() as is_in:
            if not is_in:
                self._end(number)
                return
            try:
                step = self._stored(number, image)
                if step is not None:
                    files = write_files(self._folders[step.step], step)
                    written.set_result(Delivered(step, files))
            except BaseException as error:
                self._end(number)
                written.set_exception(error)

    def _end(self, number: int) -> None:
        """Nothing behind this image is written."""
        self._composing.end(number)
        self._storing.end(number)

    def _stored(self, number: int, image: Recorded) -> LoggedStep | None:
        """The image's step, written for TensorBoard; None where one before it failed."""
        data = image.finish()
        with self._composing(number) as comes:
            if not comes:
                return None
            step = self._compose(data)
        if self._board is None:
            return step
        step = _encoded(step)
        with self._storing(number) as comes:
            if not comes:
                return None
            self._board.write(step)
        return step


def _encoded(step: LoggedStep) -> LoggedStep:
    """The step with the PNG of every picture."""
    return replace(
        step,
        pictures=tuple(
            replace(picture, rasters=tuple(map(png.encoded, picture.rasters)))
            for picture in step.pictures
        ),
    )


def write_files(folder: Path | None, step: LoggedStep) -> dict[str, list[Path]]:
    """Write the PNG files; label of a site -> the files of its maps."""
    if folder is None:
        return {}
    writer = FolderWriter(folder)
    writer.write(step)
    maps = [picture for picture in step.pictures if picture.role == "feature_maps"]
    return {p.site.label: writer.files[p.tag] for p in maps if p.site is not None}
