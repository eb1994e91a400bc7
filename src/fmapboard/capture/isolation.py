"""Run side computations inside a user's pass without autograd, autocast or dispatch modes.

Nor do they change how many threads the user's operations use: a number that torch sets per thread,
by its first parallel operation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from threadpoolctl import ThreadpoolController
from torch._C import DispatchKey
from torch._ops import _len_torch_dispatch_stack_pre_dispatch as _count
from torch._ops import _pop_mode_from_pre_dispatch
from torch.utils._python_dispatch import _push_mode

from fmapboard.interrupts import blocks

MANY_BYTES = 2 * 2**20
"""Smaller tensors are always reduced on one thread."""

# A reduction that takes longer than this has stalled. Without a stall, it takes at most a third of
# this time even with slow memory.
_STALL_SECONDS = 2e-3
_STALL_SECONDS_PER_BYTE = 1 / 3e9

# Bounds of the number of single-threaded reductions after a stall.
_MIN_BACKOFF = 16
_MAX_BACKOFF = 1 << 14


@dataclass(slots=True)
class ThreadPolicy:
    """Decides whether a reduction uses several threads; the whole process shares one policy.

    A small tensor takes tens of microseconds on one thread. A large one is split over torch's
    threads, as long as that pays: a parallel operation ends at a barrier, and if another process or
    thread occupies a core (a data-loading worker is enough), the barrier waits for the scheduler
    and 80 µs become 4 to 8 ms (measured on 2 cores, one of them busy). So every multi-threaded
    reduction is timed. After one that stalled, the next ones run on one thread. Their number
    doubles with each stall and shrinks by one with each multi-threaded reduction that does not
    stall. One stall costs about as much time as several threads save in ten reductions.

    Attributes:
        single_threaded: how many of the next large reductions run on one thread.
        backoff: how many run on one thread after the next stall.
    """

    single_threaded: int = 0
    backoff: int = _MIN_BACKOFF

    def allows_several(self, nbytes: int) -> bool:
        """True if a tensor of this many bytes is to be reduced by several threads."""
        if nbytes < MANY_BYTES or torch.get_num_threads() == 1:
            return False
        if self.single_threaded:
            self.single_threaded -= 1
            return False
        return True

    def record(self, seconds: float, nbytes: int) -> None:
        """Take the duration of a multi-threaded reduction into account."""
        if seconds > _STALL_SECONDS + nbytes * _STALL_SECONDS_PER_BYTE:
            self.single_threaded = self.backoff
            self.backoff = min(2 * self.backoff, _MAX_BACKOFF)
        else:
            self.backoff = max(self.backoff - 1, _MIN_BACKOFF)


thread_policy = ThreadPolicy()


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


class aside:  # lower case: a context manager that is used like a function
    """Run a block without autograd, autocast or dispatch modes.

    Selective checkpointing records every operation it sees, even without gradients; with dispatch
    modes disabled it sees none of fmapboard's. On the CPU the block runs on one thread once the
    thread's count is settled, or on several if it reads a large tensor (see ``ThreadPolicy``).
    OpenMP's thread count is per calling thread (specification 5.2, ``omp_set_num_threads``), so
    other threads are not affected.

    Args:
        device_type: the type of device that the block computes on.
        nbytes: how many bytes it reads.
    """

    __slots__ = ("_begun", "_device_type", "_had_grad", "_modes", "_nbytes", "_threads")

    def __init__(self, device_type: str, nbytes: int = 0) -> None:
        self._device_type = device_type
        self._nbytes = nbytes
        self._threads: list[int] = []
        self._begun: float | None = None
        self._modes: _Modes | None = None

    def __enter__(self) -> None:
        # ``torch.no_grad`` does the same, but alone takes 1.5 µs.
        self._had_grad = torch.is_grad_enabled()
        blocks.open.append(self)
        torch._C._set_grad_enabled(False)
        try:
            if self._device_type == "cpu" and (this_thread.is_settled or is_settled()):
                if self._nbytes >= MANY_BYTES and thread_policy.allows_several(self._nbytes):
                    self._begun = time.perf_counter()
                else:
                    for runtime in openmp_runtimes():
                        self._threads.append(runtime.get_num_threads())
                        runtime.set_num_threads(1)
            if (
                torch._C._len_torch_dispatch_stack()
                or _has_modes_before_dispatch()
                or torch.is_autocast_enabled(self._device_type)
            ):
                self._modes = _Modes(self._device_type)
                self._modes.disable()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        if self._begun is not None:
            thread_policy.record(time.perf_counter() - self._begun, self._nbytes)
        if self._modes is not None:
            self._modes.restore()
        # Of different lengths if an interrupt came before all counts were read.
        for runtime, count in zip(openmp_runtimes(), self._threads, strict=False):
            runtime.set_num_threads(count)
        torch._C._set_grad_enabled(self._had_grad)
        if blocks.open[-1:] == [self]:
            blocks.open.pop()


# Torch keeps one list of these modes for all threads; a thread that has them includes this key.
_has_modes_before_dispatch: Callable[[], bool] = partial(
    torch._C._dispatch_tls_is_dispatch_key_included, DispatchKey.PreDispatch
)


class _Modes:
    """The dispatch modes of this thread and its autocast state for a type of device.

    Context managers of torch do the same, but if an interrupt keeps a generator from ending, it
    ends when it is deleted, and would then restore the modes a second time.
    """

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type
        self._autocasts = torch.is_autocast_enabled(device_type)
        self._caches = torch.is_autocast_cache_enabled()
        count = torch._C._len_torch_dispatch_stack()
        self._modes = [torch._C._get_dispatch_stack_at(place) for place in range(count)]
        self._before_dispatch: list[Any] = []  # the innermost first

    def disable(self) -> None:
        """Disable all of them."""
        while _has_modes_before_dispatch() and _count():  # type: ignore[no-untyped-call]  # torch
            self._before_dispatch.append(_pop_mode_from_pre_dispatch())  # type: ignore[no-untyped-call]  # torch
        _set_dispatch_modes([])
        torch.set_autocast_enabled(self._device_type, False)
        torch.set_autocast_cache_enabled(False)

    def restore(self) -> None:
        """Restore all of them; a second call changes nothing."""
        torch.set_autocast_cache_enabled(self._caches)
        torch.set_autocast_enabled(self._device_type, self._autocasts)
        _set_dispatch_modes(self._modes)
        while self._before_dispatch:
            _push_mode(self._before_dispatch.pop())


def _set_dispatch_modes(modes: list[Any]) -> None:
    while torch._C._len_torch_dispatch_stack():
        torch._C._pop_torch_dispatch_stack(None)
    for mode in modes:
        torch._C._push_on_torch_dispatch_stack(mode)
