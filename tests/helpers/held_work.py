"""Work of a `writers.worker.Worker` that waits for the test, and a clock that the test sets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from fmapboard.options import WhenFull
from fmapboard.writers.worker import Worker

T = TypeVar("T")
LIMIT = 20.0  # s; only broken code takes that long


def at_once(work: Callable[[T], object]) -> Callable[[T], Iterator[None]]:
    """Work on an item that has one part."""

    def parts(item: T) -> Iterator[None]:
        work(item)
        yield from ()

    return parts


class Item:
    """Something to queue that can be referred to weakly."""


class Clock:
    """A clock that advances ``tick`` s per reading; ``at_reading``: its number -> callback."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick, self.readings = 0.0, tick, 0
        self.at_reading: dict[int, Callable[[], object]] = {}

    def __call__(self) -> float:
        self.readings += 1
        self.now += self.tick
        self.at_reading.pop(self.readings, int)()
        return self.now


class Desk:
    """Work that the test can hold, and the items it was given."""

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

    def worker(
        self,
        max_bytes: int = 100,
        when_full: WhenFull = "wait",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> Worker[object]:
        return Worker(
            at_once(self.work),
            self.failures.append,
            max_bytes=max_bytes,
            when_full=when_full,
            clock=clock,
        )

    def hold_at_first(self, worker: Worker[object], nbytes: int = 10) -> None:
        """Put "first", and return once the worker is held while it processes it."""
        self.held = True
        worker.put("first", nbytes)
        assert self.begun.acquire(timeout=LIMIT)

    def let_go(self) -> None:
        self.held = False
        self.go_on.release()
