"""One thread for what is read between the user's own operations.

A layer's output is read in tens of microseconds. Split over threads, each such read ends at a
barrier, and where any other process or thread holds a core (a data loader's worker will do) the
barrier waits for the scheduler: 80 µs become 4 to 8 ms (measured on 2 cores with one of them busy).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _openmp() -> ThreadpoolController:
    """The OpenMP runtimes that are loaded; torch's is, as this is first called inside a hook."""
    return ThreadpoolController().select(user_api="openmp")


def one_thread() -> AbstractContextManager[Any]:
    """Operations inside run on the calling thread alone.

    The number is OpenMP's own of this very thread (specification 5.2, ``omp_set_num_threads``):
    no other thread sees it, and `torch.get_num_threads` is afterwards what it was.
    """
    limited: AbstractContextManager[Any] = _openmp().limit(limits=1)
    return limited
