"""Process logged steps in order in worker threads; a file of its own, for concurrency alone.

During training the work runs in a thread with the lowest priority. Since Linux lets an unprivileged
thread lower its priority but never raise it again, there is a second thread with normal priority.
It takes over while a caller waits, or when the backlog reaches its bound, and later hands the work
back. Only one of the threads works at a time. The work is urgent from the time the backlog reaches
its bound until it has been short for enough consecutive additions; that number doubles each time,
so that a busy machine does not switch back and forth forever. When the backlog is full, either the
caller waits or the oldest queued step is dropped and counted.

If the process is killed, the steps that are not yet written are lost. So the backlog (the steps
that are queued or being written) holds at most `MAX_STEPS` steps.

A signal handler may raise an exception at any point of a caller's thread, which would leave a lock
locked for ever. So callers take no lock that the worker threads take: they change the backlog and
wake a thread through a ``SimpleQueue``, which C code does in one operation each.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

from fmapboard.errors import WorkerEnded, error_text
from fmapboard.interrupts import OwnThread, raise_interrupt
from fmapboard.options import WhenFull

T = TypeVar("T")

MAX_STEPS = 8
_MIN_CALM_ADDITIONS = 8
_MAX_CALM_ADDITIONS = 2**14
_LOWEST_PRIORITY = 19
_HAS_PRIORITIES = sys.platform == "linux"
"""Only Linux has per-thread priorities; elsewhere the call could affect the whole process."""
_DONE = object()


class Worker(Generic[T]):
    """A bounded, ordered queue and the threads that process it, one at a time.

    ``put`` may be called from one thread at a time, other methods from any thread. They do not
    raise: if the worker has ended or cannot start, items are discarded.

    Args:
        work: A generator function, called with each item, in order, in a worker thread. Each
            ``yield`` ends one part of the work, and the next part may run in another thread.
        failed: Called in a worker thread with each exception of ``work``, and once with
            ``WorkerEnded`` if the worker ends unexpectedly or, from ``put``, if it cannot start.
        max_bytes: Bound of the queue in bytes. A larger item is accepted if the queue is empty.
        when_full: ``"wait"`` or ``"drop_oldest"``.
        clock: Monotonic clock in seconds.

    Attributes:
        dropped: Number of items that were dropped because the queue was full.
    """

    def __init__(
        self,
        work: Callable[[T], Iterator[None]],
        failed: Callable[[Exception], None],
        *,
        max_bytes: int = 256 * 2**20,
        when_full: WhenFull = "wait",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._failed = failed
        self._clock = clock
        self._max_bytes = max_bytes
        self._when_full = when_full
        self._queued: deque[tuple[T, int]] = deque()
        self._is_working = False  # on an item that has left the queue
        self._parts: Iterator[None] | None = None
        self._is_urgent = False
        self._calm_additions = 0
        self._required = _MIN_CALM_ADDITIONS
        self._callers: deque[tuple[Callable[[], bool], threading.Lock]] = deque()
        self._closed = False
        self._ended = False
        self._pid: int | None = None  # of the process that started the first thread
        self._working = threading.Lock()  # taken by worker threads only
        self._wake: dict[bool, SimpleQueue[object]] = {low: SimpleQueue() for low in (True, False)}
        self._threads: list[OwnThread] = []
        self._identifiers: set[int] = set()  # of the threads that run
        self._running: set[bool] = set()  # priorities of the threads that run: True is low
        self.dropped = 0

    @property
    def is_inherited(self) -> bool:
        """True in a forked child of the process that queued the first item: it has no threads."""
        return self._pid is not None and self._pid != os.getpid()

    @property
    def unfinished(self) -> int:
        """How many items are queued or being worked on."""
        return len(self._queued) + self._is_working

    @property
    def nbytes(self) -> int:
        """Size of the queued items in bytes."""
        return sum(nbytes for _, nbytes in tuple(self._queued))

    def put(self, item: T, nbytes: int) -> float:
        """Queue an item that holds ``nbytes`` bytes; the first one starts the thread.

        In a forked child of the process that started it, and after ``close``, this does nothing.

        Returns:
            Time in seconds that the caller waited because the queue was full.
        """
        if self.is_inherited or self._closed or self._ended:
            return 0.0
        if not self._running:
            error = self._start(_HAS_PRIORITIES)
            if error is not None:
                self._ended = True
                self._failed(error)
                return 0.0
        before = self.unfinished
        waited = self._make_space(nbytes) if self.is_full(nbytes) else 0.0
        if self._closed or self._ended:
            return waited
        self._calm_additions = self._calm_additions + 1 if before <= 1 else 0
        if self._is_urgent and self._calm_additions >= self._required:
            self._is_urgent = False
            self._required = min(2 * self._required, _MAX_CALM_ADDITIONS)
        self._queued.append((item, nbytes))
        if self.unfinished >= MAX_STEPS:
            self._hurry()
        self._wake_worker()
        if self._ended:  # it may have emptied the queue before the item was added
            self._queued.clear()
        return waited

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until everything queued has been processed; in a worker thread, do nothing.

        Args:
            seconds: wait at most this long; None waits for everything.

        Returns:
            False if something is left.
        """
        if self.is_inherited or self._is_own_thread() or not self.unfinished:
            return True
        return self._wait_until(lambda: not self.unfinished, seconds)

    def close(self, seconds: float | None = None) -> bool:
        """Flush and end the threads; a second call does nothing.

        Args:
            seconds: as for ``flush``. What is left after that time is still processed, as long as
                the process runs.

        Returns:
            False if something is left.
        """
        is_done = self.flush(seconds)
        if self.is_inherited:
            return is_done
        self._closed = True
        for wake in self._wake.values():
            wake.put(None)
        if is_done and not self._is_own_thread():
            for thread in self._threads:
                thread.join()
        return is_done

    def is_full(self, nbytes: int) -> bool:
        """True if adding an item of ``nbytes`` bytes now would exceed a bound."""
        if not self._queued:
            return False
        return self.unfinished >= MAX_STEPS or self.nbytes + nbytes > self._max_bytes

    def _make_space(self, nbytes: int) -> float:
        """Make space in the queue according to ``when_full``; returns the seconds waited."""
        self._hurry()
        if self._when_full == "drop_oldest":
            while self.is_full(nbytes):
                with contextlib.suppress(IndexError):  # the worker has just taken the last one
                    self._queued.popleft()
                    self.dropped += 1
            return 0.0
        began = self._clock()
        self._wait_until(lambda: not self.is_full(nbytes))
        return self._clock() - began

    def _hurry(self) -> None:
        """Make the work urgent, since the backlog has reached a bound."""
        if not self._is_urgent:
            self._is_urgent = True
            self._calm_additions = 0
        self._start_normal()

    def _wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for a condition while the work runs at normal priority; False if time ran out."""
        go_on = threading.Lock()
        go_on.acquire()
        self._callers.append((condition, go_on))
        self._start_normal()
        self._wake_worker()
        if condition() or self._ended:  # it may have been before the caller was noted
            return True
        return go_on.acquire(timeout=-1 if seconds is None else seconds)

    def _wake_worker(self) -> None:
        self._wake[self._is_low()].put(None)

    def _is_low(self) -> bool:
        """True if it is the turn of the low-priority thread."""
        can_change = False in self._running
        return _HAS_PRIORITIES and not (can_change and (self._is_urgent or self._callers))

    def _is_own_thread(self) -> bool:
        """True in a worker thread, where garbage collection may finalize the worker's owner."""
        return threading.get_ident() in self._identifiers

    def _start_normal(self) -> None:
        if False not in self._running:
            self._start(False)  # if it cannot start, the first thread continues

    def _start(self, low: bool) -> WorkerEnded | None:
        """Start the low- or normal-priority thread; returns an error if it cannot start.

        After a signal handler's exception the next call may start another one; it does no harm.
        """
        self._pid = os.getpid()
        # When this object is deleted, the thread is woken, and ends.
        wake = self._wake[low]
        reference = weakref.ref(self, wake.put)
        body = partial(_loop, reference, wake, low, self._identifiers)
        thread = OwnThread(body, "fmapboard")
        error = _started(thread)
        if error is not None:
            return error
        self._threads.append(thread)
        self._running.add(low)
        return None

    def _advance(self, low: bool) -> bool:
        """Work on one part; False if there is none, or if it is the other thread's turn."""
        with self._working:
            goes_on = self.unfinished > 0
            if goes_on and low != self._is_low():
                self._wake[not low].put(None)
                return False
            if self._parts is None and goes_on:
                self._take()
            if self._parts is not None:
                self._parts = self._after_part(self._parts)
            self._release_callers()
            return goes_on

    def _take(self) -> None:
        """Begin the oldest queued item, unless it has just been dropped."""
        self._is_working = True  # before the item leaves the queue, so that it is always counted
        try:
            item, _ = self._queued.popleft()
        except IndexError:
            self._is_working = False
        else:
            self._parts = self._work(item)
            self._release_callers()  # the queue has space for as many bytes

    def _after_part(self, parts: Iterator[None]) -> Iterator[None] | None:
        """Work on one part of an item; returns the parts after it, or None after the last one."""
        try:
            try:
                if next(parts, _DONE) is not _DONE:
                    return parts
            except Exception as error:
                self._failed(error)
        except BaseException as error:
            self._ended = True
            self._queued.clear()
            with contextlib.suppress(BaseException):  # the report itself may have failed
                self._failed(_ended_by(error, "ended"))
        self._is_working = False
        return None

    def _release_callers(self) -> None:
        """Let the callers go whose condition holds, also those that do not wait any more."""
        for caller in tuple(self._callers):
            condition, go_on = caller
            if self._ended or condition():
                self._callers.remove(caller)
                go_on.release()


def _started(thread: OwnThread) -> WorkerEnded | None:
    """Start a thread; returns an error if it cannot start."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise_interrupt(error)
        return _ended_by(error, "cannot start")
    return None


def _loop(
    reference: weakref.ref[Worker[T]], wake: SimpleQueue[object], low: bool, identifiers: set[int]
) -> None:
    """Body of a thread; while idle, it keeps only a weak reference, so the worker can be freed.

    Args:
        reference: to the worker.
        wake: wakes the thread.
        low: run at the lowest priority.
        identifiers: of the worker's threads; holds this one's while it runs.
    """
    identifiers.add(threading.get_ident())
    try:
        if low:  # if a torch thread loses its core, the others spin and wait
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        while True:
            wake.get()
            worker = reference()
            if worker is None:
                return
            while worker._advance(low):
                pass
            if worker._ended or (worker._closed and not worker.unfinished):
                for other in worker._wake.values():  # threads that wait, if a start was interrupted
                    other.put(None)
                return
            del worker
    finally:
        identifiers.discard(threading.get_ident())


def _ended_by(error: BaseException, what: str) -> WorkerEnded:
    found = WorkerEnded(f"the worker thread {what} ({error_text(error)})")
    found.__cause__ = error.with_traceback(None)  # its frames would keep tensors alive
    return found
