"""Concurrent calls to TensorBoard's data provider.

TensorBoard's fast loader is a separate process, reached over TCP. Its responses are small packets,
and each waits until the previous one is acknowledged (Nagle's algorithm). The operating system
delays an acknowledgement by 40 ms, unless a packet in the other direction can carry it. Sequential
calls therefore take 43 ms per blob; concurrent calls take 0.5 ms per blob, plus 40 ms for the last
response. So all calls are sent together, and while responses are pending, small extra calls
("nudges") carry the acknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")
_NUDGE_INTERVAL = 0.004  # s
_NUDGES = 25
_THREADS = 8


class InTurn:
    """Runs calls one after another in this thread, for a loader in this process."""

    def __call__(self, calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
        """The results, in order; the first exception is raised and ends the calls."""
        return [call() for call in calls]


class AtOnce:
    """Runs calls concurrently in its own threads, and sends nudges meanwhile; thread safe."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(_THREADS, "feature-maps-read")
        self._nudgers = ThreadPoolExecutor(_THREADS, "fmapboard-nudge")

    def __call__(self, calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
        """The results, in order; raises the first exception.

        Args:
            calls: functions that may run in any thread.
            nudge: a small call, made only for the packet that it sends; its errors are ignored.
        """
        futures = [self._workers.submit(call) for call in calls]
        for _ in range(_NUDGES):
            if not wait(futures, timeout=_NUDGE_INTERVAL).not_done:
                break
            self._nudgers.submit(nudge)
        return [future.result() for future in futures]
