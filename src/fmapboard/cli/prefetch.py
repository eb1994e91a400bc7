"""A ``map`` that computes the next few results ahead, in threads."""

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
    """Like ``map(function, items)``, with up to ``ahead`` results computed before they are needed.

    An exception in the function is raised where its result would be yielded. If the generator is
    closed early, it starts no further call and waits for the running ones.

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
