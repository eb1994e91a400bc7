"""The worker thread: does the slow half of a logged step in order, beside the forward passes.

The queue is bounded in bytes. What happens when it is full is the user's choice: the caller
waits, or the oldest step that is still waiting is dropped and counted.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from fmapboard.options import WhenFull

T = TypeVar("T")
_LOWEST_PRIORITY = 19
_MOMENT = 1.0
"""Seconds in which a thread begins, if it does at all."""


class Worker(Generic[T]):
    """One bounded, ordered worker thread; all methods may be called from any thread.

    Args:
        work: called in the worker thread with each item, in order.
        failed: called in the worker thread with an exception that ``work`` raised; the worker
            goes on with the next item.
        max_bytes: bound of the queue. One item larger than the bound is let in when it is alone.
        when_full: ``"wait"`` or ``"drop_oldest"``.
        low_priority: the thread gives way to all other threads, as those of training.
    """

    def __init__(
        self,
        work: Callable[[T], None],
        failed: Callable[[Exception], None],
        *,
        max_bytes: int = 256 * 2**20,
        when_full: WhenFull = "wait",
        low_priority: bool = False,
    ) -> None:
        self._work, self._failed = work, failed
        self._max_bytes, self._when_full = max_bytes, when_full
        self._low_priority = low_priority
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._busy = False
        self._closed = False
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def put(self, item: T, nbytes: int) -> None:
        """Queue an item that holds ``nbytes`` bytes; starts the thread at the first one.

        In a forked child of the process that did so, and after `close`, this does nothing.
        """
        if self._is_inherited():
            return
        with self._changed:
            if self._closed:
                return
            self._start()
            while self._items and self._bytes + nbytes > self._max_bytes:
                if self._when_full == "wait":
                    self._changed.wait()
                else:
                    self._bytes -= self._items.popleft()[1]
                    self.dropped += 1
            self._items.append((item, nbytes))
            self._bytes += nbytes
            self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything queued so far has been worked on."""
        if self._is_inherited() or self._is_own_thread():
            return
        with self._changed:
            if self._alive():
                self._changed.wait_for(lambda: not self._items and not self._busy)

    def close(self) -> None:
        """Flush and end the thread; a second call does nothing."""
        self.flush()
        if self._is_inherited():
            return
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and not self._is_own_thread():
            self._thread.join()

    def _is_inherited(self) -> bool:
        """Is this a forked child (a DataLoader worker)? It has the object without its thread, and
        a lock that the thread may have held at that moment."""
        return self._thread is not None and self._pid != os.getpid()

    def _is_own_thread(self) -> bool:
        """Is this the worker thread? The collector may end an owner there, amid an item."""
        return self._thread is threading.current_thread()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> None:
        if self._thread is None:
            self._pid = os.getpid()
            began = threading.Event()
            body = weakref.ref(self), self._changed, began, self._low_priority
            self._thread = threading.Thread(target=_loop, args=body, name="fmapboard", daemon=True)
            try:
                self._thread.start()
            except BaseException:  # Ctrl-C in the middle: the thread may run all the same
                if not began.wait(_MOMENT):
                    self._thread = None
                raise

    def _next(self) -> tuple[T, int] | None:
        """The next item; call with the condition held. None: nothing now."""
        if not self._items:
            return None
        self._busy = True
        item = self._items.popleft()
        self._bytes -= item[1]
        self._changed.notify_all()
        return item

    def _done(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()


def _loop(
    reference: weakref.ref[Worker[T]],
    changed: threading.Condition,
    began: threading.Event,
    low_priority: bool,
) -> None:
    """The thread's body; it holds the worker weakly while idle, so an owner can be collected."""
    began.set()
    if low_priority:
        _lower_own_priority()
    while True:
        with changed:
            worker = reference()
            if worker is None:
                return
            item = worker._next()
            if item is None:
                if worker._closed:
                    return
                del worker
                changed.wait(timeout=1.0)
                continue
        try:
            worker._work(item[0])
        except Exception as error:
            worker._failed(error)
        finally:
            del item
            worker._done()
        del worker


def _lower_own_priority() -> None:
    """Give way to training: torch's threads spin at a barrier for a core that is taken away."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
    except (AttributeError, OSError):
        return  # only Linux counts priority by thread; elsewhere it stays as it is
