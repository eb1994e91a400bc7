"""How many threads read what is read between the user's own operations.

A small layer's output is read in tens of microseconds, by one thread. A large one by as many as
torch has, as long as that pays: each such read ends at a barrier, and where any other process or
thread holds a core (a data loader's worker will do) the barrier waits for the scheduler, and 80 µs
become 4 to 8 ms (measured on 2 cores with one of them busy). So every read is timed, and after one
that stalled one thread reads alone for a while, longer each time, and less long by every read that
does not stall. What a stall costs, several threads save in about ten reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _openmp() -> tuple[Any, ...]:
    """The OpenMP runtimes that are loaded; torch's is, as this is first called inside a hook."""
    return tuple(ThreadpoolController().select(user_api="openmp").lib_controllers)


class one_thread:  # a context manager, used as a function
    """Operations inside run on the calling thread alone.

    The number is OpenMP's own of this very thread (specification 5.2, ``omp_set_num_threads``):
    no other thread sees it, and `torch.get_num_threads` is afterwards what it was.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        # Torch sets a thread's number when it is first asked for: before ours, or it would undo it.
        torch.get_num_threads()
        self._before = [runtime.get_num_threads() for runtime in _openmp()]
        for runtime in _openmp():
            runtime.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        for runtime, before in zip(_openmp(), self._before, strict=True):
            runtime.set_num_threads(before)


MANY_BYTES = 2 * 2**20
"""From here on several threads may read."""

# A read that takes longer than this stalled: it takes a third of it where memory is slow.
_SECONDS, _SECONDS_A_BYTE = 2e-3, 1 / 3e9

# So many reads are one thread's after a stall.
_LEAST, _MOST = 16, 1 << 14


@dataclass(slots=True)
class Team:
    """Decides whether several threads read; all reads of the process share one.

    Attributes:
        alone: so many reads more are one thread's.
        penalty: how many they are after the next stall.
    """

    alone: int = 0
    penalty: int = _LEAST

    def reads(self, nbytes: int) -> bool:
        """Shall several threads read so much?"""
        if nbytes < MANY_BYTES or torch.get_num_threads() == 1:
            return False
        if self.alone:
            self.alone -= 1
            return False
        return True

    def took(self, seconds: float, nbytes: int) -> None:
        """So long several threads took."""
        if seconds > _SECONDS + nbytes * _SECONDS_A_BYTE:
            self.alone, self.penalty = self.penalty, min(2 * self.penalty, _MOST)
        else:
            self.penalty = max(self.penalty - 1, _LEAST)


team = Team()
