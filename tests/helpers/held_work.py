"""Work of a `writers.worker.Worker` that goes on when the test lets it."""

from __future__ import annotations

import threading

from fmapboard.options import WhenFull
from fmapboard.writers.worker import Worker

LIMIT = 20.0  # s; only a broken worker takes that long


class Desk:
    """Work that goes on when it is told to, and keeps what it was given."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.failures: list[Exception] = []
        self.begun, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.held = False

    def work(self, item: object) -> None:
        self.begun.release()
        if self.held:
            assert self.go_on.acquire(timeout=LIMIT)
        if isinstance(item, Exception):
            raise item
        self.done.append(item)

    def worker(self, max_bytes: int = 100, when_full: WhenFull = "wait") -> Worker[object]:
        return Worker(self.work, self.failures.append, max_bytes=max_bytes, when_full=when_full)

    def hold_at_first(self, worker: Worker[object], nbytes: int = 10) -> None:
        """Give it "first", and return when it is at work on it and stays there."""
        self.held = True
        worker.put("first", nbytes)
        assert self.begun.acquire(timeout=LIMIT)

    def let_go(self) -> None:
        self.held = False
        self.go_on.release()
