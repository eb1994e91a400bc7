"""Process logged steps in order in worker threads, concurrently with training.

During training the work runs in a thread with the lowest priority. Since Linux lets an unprivileged
thread lower its priority but never raise it again, there is a second thread with normal priority.
It takes over while a caller waits, or when the backlog reaches its bound (see ``backlog``), and
later hands the work back. Only one of the threads works at a time. When the backlog is full, either
the caller waits or the oldest queued step is dropped and counted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from fmapboard.errors import WorkerEnded
from fmapboard.options import WhenFull
from fmapboard.writers.backlog import Backlog, Urgency

T = TypeVar("T")
_LOWEST_PRIORITY = 19
_HAS_PRIORITIES = sys.platform == "linux"
"""Only Linux has per-thread priorities; elsewhere the call could affect the whole process."""
_DONE = object()
_START_SECONDS = 1.0
"""Maximum time in seconds that a thread takes to start."""


class Worker(Generic[T]):
    """A bounded, ordered queue and the threads that process it, one at a time.

    All methods may be called from any thread. If the worker has ended or cannot start, they do not
    raise, and items are discarded.

    Args:
        work: Called with each item, in order, in a worker thread. If it is a generator function,
            each ``yield`` ends one part of the work, and the next part may run in another thread.
        failed: Called in a worker thread with each exception of ``work``; the worker then goes on
            with the next item. Also called once with ``WorkerEnded`` if the worker ends
            unexpectedly or cannot start; in the latter case, in the thread that called ``put``.
        max_bytes: Bound of the queue in bytes. A larger item is accepted if the queue is empty.
        when_full: ``"wait"`` or ``"drop_oldest"``.
        low_priority: Run at the lowest priority unless the work is urgent (see the module's
            docstring), and also bound the backlog in steps.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self,
        work: Callable[[T], Iterable[None] | None],
        failed: Callable[[Exception], None],
        *,
        max_bytes: int = 256 * 2**20,
        when_full: WhenFull = "wait",
        low_priority: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._failed = work, failed
        self._when_full, self._clock = when_full, clock
        self._backlog: Backlog[T] = Backlog(max_bytes, in_steps=low_priority)
        self._urgency = Urgency()
        self._starts_low = low_priority and _HAS_PRIORITIES
        self._waited = 0.0
        self._callers = 0
        self._parts: Iterator[None] | None = None
        self._busy = False
        self._closed = self._ended = False
        self._pid = os.getpid()
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # One condition per thread: a low-priority thread woken needlessly could hold the lock.
        self._turn = {low: threading.Condition(lock) for low in (True, False)}
        self._threads: dict[bool, threading.Thread] = {}
        self.dropped = 0

    @property
    def is_inherited(self) -> bool:
        """True in a forked child of the process that queued the first item.

        The child has this object without its threads, and a lock that one of them may have held.
        """
        return bool(self._threads) and self._pid != os.getpid()

    def put(self, item: T, nbytes: int) -> float:
        """Queue an item that holds ``nbytes`` bytes; the first one starts the thread.

        In a forked child of the process that started it, and after ``close``, this does nothing.

        Returns:
            Time in seconds that the caller waited because the queue was full.
        """
        if self.is_inherited:
            return 0.0
        with self._changed:
            if self._closed or self._ended:
                return 0.0
            error = None if self._threads else self._start(self._starts_low)
            if error is None:
                return self._add(item, nbytes)
            self._ended = True
        self._failed(error)
        return 0.0

    def flush(self) -> None:
        """Wait until everything queued has been processed; in a worker thread, do nothing."""
        if self.is_inherited or self._is_own_thread():
            return
        with self._changed:
            if self._backlog:
                self._wait_until(lambda: not self._backlog)

    def close(self) -> None:
        """Flush and end the threads; a second call does nothing."""
        self.flush()
        if self.is_inherited:
            return
        with self._changed:
            self._closed = True
            self._wake_all()
        if not self._is_own_thread():
            for thread in list(self._threads.values()):
                thread.join()

    def _add(self, item: T, nbytes: int) -> float:
        """Queue the item once there is space for it; returns the seconds waited."""
        now, before = self._clock() - self._waited, len(self._backlog)
        waited = self._make_space(nbytes, now)
        if self._closed or self._ended:
            return waited
        self._urgency.added(before)
        if self._backlog.add(item, nbytes, now):
            self._urgency.rise()
            self._start_normal()
        self._turn[self._is_low()].notify()
        return waited

    def _make_space(self, nbytes: int, now: float) -> float:
        """Make space in the queue according to ``when_full``; returns the seconds waited."""
        if not self._backlog.is_full(nbytes, now):
            return 0.0
        self._urgency.rise()
        self._start_normal()
        if self._when_full == "drop_oldest":
            while self._backlog.is_full(nbytes, now):
                self._backlog.drop_oldest()
                self.dropped += 1
            return 0.0
        began = self._clock()
        try:
            self._wait_until(lambda: not self._backlog.is_full(nbytes, now))
        finally:
            waited = self._clock() - began
            self._waited += waited
        return waited

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the work runs at normal priority; call with the lock held."""
        self._callers += 1
        try:
            self._start_normal()
            self._turn[self._is_low()].notify()
            self._changed.wait_for(condition)  # an ended worker has no backlog, so this returns
        finally:
            self._callers -= 1
            self._turn[self._is_low()].notify()

    def _is_low(self) -> bool:
        """True if it is the turn of the low-priority thread."""
        can_change = False in self._threads
        is_urgent = self._urgency.is_high or self._callers > 0
        return self._starts_low and not (can_change and is_urgent)

    def _is_own_thread(self) -> bool:
        """True in a worker thread, where garbage collection may finalize the worker's owner."""
        return threading.current_thread() in self._threads.values()

    def _start_normal(self) -> None:
        if False not in self._threads:
            self._start(False)  # if it cannot start, the first thread continues

    def _start(self, low: bool) -> WorkerEnded | None:
        """Start the low- or normal-priority thread; returns an error if it cannot start."""
        self._pid = os.getpid()
        started = threading.Event()
        body = weakref.ref(self), self._turn[low], started, low
        thread = threading.Thread(target=_loop, args=body, name="fmapboard", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            return _ended_by(error, "cannot start")
        except BaseException:  # Ctrl-C during start(): the thread may run anyway
            if started.wait(_START_SECONDS):
                self._threads[low] = thread
            raise
        self._threads[low] = thread
        return None

    def _next(self, low: bool) -> Iterator[None] | None:
        """The parts of the item to work on, or None; call with the lock held."""
        if self._busy or self._ended or low != self._is_low():
            return None
        if self._parts is None:
            if not self._backlog.is_queued:
                return None
            self._parts = _parts(self._work, self._backlog.take())
            self._changed.notify_all()
        self._busy = True
        return self._parts

    def _advance(self, parts: Iterator[None]) -> None:
        """Work on one part."""
        is_done = True
        try:
            is_done = next(parts, _DONE) is _DONE
        except Exception as error:
            self._report(error)
        except BaseException as error:
            self._end(error)
        with self._changed:
            self._busy = False
            if is_done:
                self._parts = None
                self._backlog.done()
            self._wake_all()

    def _report(self, error: Exception) -> None:
        try:
            self._failed(error)
        except BaseException as worse:
            self._end(worse)

    def _end(self, error: BaseException) -> None:
        """Report that the worker thread ends with an error, and release all waiting callers."""
        with self._changed:
            self._ended = True
            self._backlog.clear()
        with contextlib.suppress(BaseException):  # the report itself may have failed
            self._failed(_ended_by(error, "ended"))

    def _wake_all(self) -> None:
        """Wake the callers and the thread whose turn it is; at the end, both threads."""
        self._changed.notify_all()
        for low, turn in self._turn.items():
            if self._closed or self._ended or low == self._is_low():
                turn.notify_all()

    def _is_over(self) -> bool:
        return self._ended or (self._closed and not self._backlog)


def _loop(
    reference: weakref.ref[Worker[T]],
    turn: threading.Condition,
    started: threading.Event,
    low: bool,
) -> None:
    """Body of a thread; while idle, it keeps only a weak reference, so the worker can be freed."""
    started.set()
    if low:
        _lower_own_priority()
    while True:
        with turn:
            worker = reference()
            if worker is None:
                return
            parts = worker._next(low)
            if parts is None:
                if worker._is_over():
                    return
                del worker
                turn.wait(timeout=1.0)
                continue
        worker._advance(parts)
        del worker, parts


def _parts(work: Callable[[T], Iterable[None] | None], item: T) -> Iterator[None]:
    """The parts of the work on an item; each may run in a different thread."""
    parts = work(item)
    if parts is not None:
        yield from parts


def _ended_by(error: BaseException, what: str) -> WorkerEnded:
    found = WorkerEnded(f"the worker thread {what} ({type(error).__name__}: {error})")
    found.__cause__ = error.with_traceback(None)  # its frames would keep tensors alive
    return found


def _lower_own_priority() -> None:
    """Lower the thread's priority: if a torch thread loses its core, the others spin and wait."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
