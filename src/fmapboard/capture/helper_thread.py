"""A thread that reads tensors beside the training thread, inside a logged step."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fmapboard.capture.isolation import aside

T = TypeVar("T")


class HelperThread:
    """Runs functions one after another on a thread of its own, which starts with the first.

    It pays for operations on the CPU that release the interpreter's lock. A function that the
    thread has not begun when its result is needed runs on the caller's thread, so that nobody waits
    for a busy machine. The thread ends when this object is deleted; a forked process starts another
    one.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def start(self, act: Callable[[], T]) -> Callable[[], T]:
        """Begin to run a function, inside `aside`.

        Returns:
            A function that waits for the result and returns it, or raises what ``act`` has raised.
            To be called at most once.
        """

        def isolated() -> T:
            with aside("cpu"):
                return act()

        try:
            running = self._threads().submit(isolated)
        except RuntimeError:  # the process is ending, or may start no thread
            return isolated

        def result() -> T:
            return isolated() if running.cancel() else running.result()

        return result

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(1, "fmapboard-helper"), os.getpid()
        return self._pool
