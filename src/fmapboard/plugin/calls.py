"""Many calls to TensorBoard's data provider at once.

The fast loader is a second process. Its answers come in small packets, of which each waits for the
one before to be acknowledged, and the system acknowledges only after 40 ms or with the next packet
that goes the other way (Nagle's algorithm against delayed acknowledgement). One blob after the
other so takes 43 ms each; many at once take 0.5 ms each and then 40 ms for the last one. So calls
go out together, and while the last answers are due, small further calls carry the acknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")
_GAP = 0.004  # s
_NUDGES = 25
_THREADS = 8


class InTurn:
    """Calls one after the other in this thread: for the loader that lives in this process."""

    def __call__(self, calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
        """The results, in order; the first exception ends it."""
        return [call() for call in calls]


class AtOnce:
    """Calls side by side in threads of its own, kept going by nudges; thread safe."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(_THREADS, "feature-maps-read")
        self._nudgers = ThreadPoolExecutor(_THREADS, "fmapboard-nudge")

    def __call__(self, calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
        """The results, in order; raises the first exception.

        Args:
            calls: are safe to run in any thread.
            nudge: a call so small that only its packet counts; its errors do not.
        """
        futures = [self._workers.submit(call) for call in calls]
        for _ in range(_NUDGES):
            if not wait(futures, timeout=_GAP).not_done:
                break
            self._nudgers.submit(nudge)
        return [future.result() for future in futures]
