"""Run operations without making torch set its number of threads in the user's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch
from threadpoolctl import ThreadpoolController

from fmapboard.own_thread import OwnThread

P = ParamSpec("P")
T = TypeVar("T")


@lru_cache(maxsize=1)
def openmp_runtimes() -> tuple[Any, ...]:
    """The loaded OpenMP runtimes. First called inside a hook, when torch's runtime is loaded.

    The search for them passes over every ``OSError``, and so over a ``TimeoutError`` of a signal
    handler. Handlers run in the main thread, so the search runs in another one.
    """
    return _in_another_thread(
        lambda: tuple(ThreadpoolController().select(user_api="openmp").lib_controllers)
    )


class _Thread(threading.local):
    """What is known of torch's number of threads in this thread.

    Attributes:
        is_settled: torch has set the count, or would not change it.
        counts: those of the OpenMP runtimes when they were last looked at.
    """

    def __init__(self) -> None:
        self.is_settled, self.counts = False, list[int]()


this_thread = _Thread()


def is_settled() -> bool:
    """True if nothing that runs now changes how many threads the user's operations use later.

    A new thread begins with OpenMP's own count. The first operation there that may be parallel,
    such as ``max_pool2d``, makes torch set the count of ``torch.set_num_threads``, whichever thread
    that was called in. If fmapboard's operations came first, the user's would run on another number
    of threads, with other rounding errors. So in a thread where that is still to come and changes
    the count, fmapboard does not ask torch for it, and reads tensors in another thread.
    """
    if this_thread.is_settled:
        return True
    if threading.current_thread() is not threading.main_thread():
        counts = [runtime.get_num_threads() for runtime in openmp_runtimes()]
        if counts == this_thread.counts:
            return False  # as when they were looked at last
        # What torch uses in a thread, from its first parallel operation on:
        if counts and _in_another_thread(torch.get_num_threads) not in counts:
            this_thread.counts = counts
            return False
    settle()
    return True


def settle() -> None:
    """Make torch set the count in this thread, which is one of fmapboard's or of no consequence."""
    torch.get_num_threads()
    this_thread.is_settled = True


def without_settling(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function run in another thread if the count is not settled in the calling one.

    There it runs without gradients; call it where they are off.
    """

    @wraps(function)
    def apart(*args: P.args, **kwargs: P.kwargs) -> T:
        def settled() -> T:
            settle()
            with torch.no_grad():
                return function(*args, **kwargs)

        if this_thread.is_settled or is_settled():
            return function(*args, **kwargs)
        return _in_another_thread(settled)

    return apart


def _in_another_thread(act: Callable[[], T]) -> T:
    """Call a function in a new thread, and return or raise what it does."""
    done = Future[T]()

    def body() -> None:
        try:
            done.set_result(act())
        except BaseException as error:
            done.set_exception(error)

    thread = OwnThread(body, "fmapboard-apart")
    thread.start()
    thread.join()
    return done.result()
