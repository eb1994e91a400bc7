"""Chooses how many threads reduce a tensor on the CPU inside a user's pass.

A small tensor takes tens of microseconds on one thread. A large one is split over torch's threads,
as long as that pays: a parallel operation ends at a barrier, and if another process or thread
occupies a core (a data-loading worker is enough), the barrier waits for the scheduler and 80 µs
become 4 to 8 ms (measured on 2 cores, one of them busy). So every multi-threaded reduction is
timed. After one that stalled, the next ones run on one thread. Their number doubles with each stall
and shrinks by one with each multi-threaded reduction that does not stall. One stall costs about
as much time as several threads save in ten reductions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fmapboard.measure.thread_count import is_settled, openmp_runtimes


class one_thread:  # lower case: a context manager that is used like a function
    """Operations inside the block run on the calling thread alone, once its count is settled.

    Sets OpenMP's thread count, which is per calling thread (specification 5.2,
    ``omp_set_num_threads``), so other threads are not affected. ``torch.get_num_threads`` returns
    the same value afterwards as before.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        if not is_settled():
            return
        self._before = [runtime.get_num_threads() for runtime in openmp_runtimes()]
        for runtime in openmp_runtimes():
            runtime.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        # Of different lengths if an interrupt came before the counts were read.
        for runtime, before in zip(openmp_runtimes(), self._before, strict=False):
            runtime.set_num_threads(before)


MANY_BYTES = 2 * 2**20
"""Smaller tensors are always reduced on one thread."""

# A reduction that takes longer than this has stalled. Without a stall, it takes at most a third of
# this time even with slow memory.
_STALL_SECONDS, _STALL_SECONDS_PER_BYTE = 2e-3, 1 / 3e9

# Bounds of the number of single-threaded reductions after a stall.
_MIN_BACKOFF, _MAX_BACKOFF = 16, 1 << 14


@dataclass(slots=True)
class ThreadPolicy:
    """Decides whether a reduction uses several threads; the whole process shares one policy.

    Attributes:
        single_threaded: how many of the next large reductions run on one thread.
        backoff: how many run on one thread after the next stall.
    """

    single_threaded: int = 0
    backoff: int = _MIN_BACKOFF

    def allows_several(self, nbytes: int) -> bool:
        """True if a tensor of this many bytes is to be reduced by several threads."""
        if nbytes < MANY_BYTES or not is_settled() or torch.get_num_threads() == 1:
            return False
        if self.single_threaded:
            self.single_threaded -= 1
            return False
        return True

    def record(self, seconds: float, nbytes: int) -> None:
        """Take the duration of a multi-threaded reduction into account."""
        if seconds > _STALL_SECONDS + nbytes * _STALL_SECONDS_PER_BYTE:
            self.single_threaded, self.backoff = self.backoff, min(2 * self.backoff, _MAX_BACKOFF)
        else:
            self.backoff = max(self.backoff - 1, _MIN_BACKOFF)


thread_policy = ThreadPolicy()
