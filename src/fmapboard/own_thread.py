"""Start a thread from a training thread that an exception of a signal handler may interrupt.

The methods of ``threading.Thread`` and the callbacks that run when a ``Thread`` is deleted are
Python code. An exception of a signal handler inside such a callback is printed and lost, and one
inside ``Thread.start`` leaves the thread in the lists of ``threading``. So a helper thread, which
signal handlers never interrupt, makes, starts, joins and deletes the ``Thread``.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable


class OwnThread:
    """A daemon thread. An exception of a signal handler inside ``start`` leaves it started or not.

    Args:
        body: Called once in the thread.
        name: The name of the thread.
    """

    def __init__(self, body: Callable[[], object], name: str) -> None:
        self._body = body
        self._name = name
        self._has_ended = False
        self._ended = _thread.allocate_lock()
        self._started = _thread.allocate_lock()
        self._ended.acquire()
        self._started.acquire()

    def start(self) -> None:
        """Start the thread; call it once.

        Raises:
            RuntimeError, MemoryError: The thread cannot be started.
        """
        _thread.start_new_thread(self._help, ())
        self._started.acquire()

    def join(self) -> None:
        """Wait until the thread, which has been started, has ended."""
        if not self._has_ended:
            self._ended.acquire()
            self._ended.release()  # others may wait too

    def _help(self) -> None:
        try:
            self._run()
        finally:
            self._has_ended = True
            self._ended.release()

    def _run(self) -> None:
        is_done = _thread.allocate_lock()
        is_done.acquire()

        def body() -> None:
            try:
                self._body()
            finally:
                is_done.release()

        try:
            thread = threading.Thread(target=body, name=self._name, daemon=True)
            thread.start()
        except (RuntimeError, MemoryError):  # there can be no second thread
            self._started.release()
            self._body()
        else:
            self._started.release()
            is_done.acquire()
            while thread.is_alive():  # `join` would list the helper in `threading` for ever
                time.sleep(0)
