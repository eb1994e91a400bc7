"""Results of a function in order, the next few computed beforehand in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def prefetched(
    function: Callable[[A], B], items: Iterable[A], *, ahead: int, threads: int
) -> Generator[B, None, None]:
    """``map(function, items)``, at most ``ahead`` calls before what is taken.

    An exception of the function is raised in its place in the order, behind what came before it.
    Closed early, it starts no further call and waits for those that run.

    >>> list(prefetched(abs, [-1, 2, -3], ahead=2, threads=2))
    [1, 2, 3]
    """
    waiting: deque[Future[B]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fmapboard-prefetch")
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
