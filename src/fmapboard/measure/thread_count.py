"""How many threads torch uses: a number that is set per thread, by its first parallel operation."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def openmp_runtimes() -> tuple[Any, ...]:
    """The loaded OpenMP runtimes. First called inside a hook, when torch's runtime is loaded."""
    return tuple(ThreadpoolController().select(user_api="openmp").lib_controllers)


class _Thread(threading.local):
    """What is known of torch's number of threads in this thread.

    Attributes:
        is_settled: torch has set the number, or would not change it.
    """

    def __init__(self) -> None:
        self.is_settled = False


this_thread = _Thread()


def is_settled() -> bool:
    """True if nothing that runs now changes how many threads the user's operations use later.

    A new thread begins with OpenMP's own number. The first operation there that may be parallel,
    such as ``max_pool2d``, makes torch set the number of ``torch.set_num_threads``, whichever
    thread that was called in. If fmapboard's operations came first, the user's would run on another
    number of threads, with other rounding errors. So a step that begins in a thread where that is
    still to come, and changes the number, is not logged.
    """
    if this_thread.is_settled:
        return True
    if threading.current_thread() is not threading.main_thread():
        with ThreadPoolExecutor(1) as other:  # asking torch here would set the number
            number = other.submit(torch.get_num_threads).result()
        counts = [runtime.get_num_threads() for runtime in openmp_runtimes()]
        if counts and number not in counts:
            return False
    settle()
    return True


def settle() -> None:
    """Make torch set the number in this thread: it is one of fmapboard's, or that is harmless."""
    torch.get_num_threads()
    this_thread.is_settled = True
