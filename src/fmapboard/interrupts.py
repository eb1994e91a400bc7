"""Keep exceptions that are meant for the whole program: Ctrl-C and those of signal handlers.

An exception that is not an ``Exception`` (``KeyboardInterrupt``, ``SystemExit``) and any exception
that a signal handler raised (``TimeoutError`` of an alarm, one of a Slurm handler) comes at any
point of whatever code runs, and is none of that code's errors. So that it reaches the user and
leaves nothing behind, fmapboard's code on a training thread uses what is here:

- Wherever it swallows exceptions, ``raise_interrupt`` or ``interrupt_in`` comes first.
- What it changes for a while, a ``Block`` restores, by `restoring` or a class of its own.
- It starts threads as ``OwnThread``.
- Of objects of the user it knows something by a ``WeakTable``, which is not called when they are
  deleted: an exception that is raised in such a call is printed and lost.

An exception that another thread raises asynchronously (``PyThreadState_SetAsyncExc``) cannot be
told from one of the code that ran.
"""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from traceback import walk_stack, walk_tb
from types import CodeType, FrameType
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def interrupt_in(error: BaseException | None) -> BaseException | None:
    """The interrupt that led to an exception, or that it is itself; None if there is none.

    Code that is interrupted may fail in turn, with an exception whose ``__context__`` is the
    interrupt. What is handled already, further out, does not count: an ``except`` block of the
    user's, for example, in which a step is trained.

    Args:
        error: the exception that was caught.
    """
    outer = set() if error is None else _callers(_caught_in(error))
    seen: set[int] = set()  # a chain may be a circle
    while error is not None and id(error) not in seen:
        if _caught_in(error) in outer:
            return None
        if not isinstance(error, Exception) or _is_of_signal_handler(error):
            return error
        seen.add(id(error))
        error = error.__cause__ if error.__context__ is None else error.__context__
    return None


def raise_interrupt(error: BaseException) -> None:
    """Raise the interrupt that led to a caught exception, if there is one."""
    found = interrupt_in(error)
    if found is not None:
        raise found


def is_interrupted() -> bool:
    """True while an interrupt other than ``sys.exit`` is handled, or after one ended the program.

    Call it from ``__exit__``, an ``except`` or a ``finally`` block, or at interpreter exit.
    """
    found = interrupt_in(sys.exc_info()[1] or getattr(sys, "last_value", None))
    return found is not None and not isinstance(found, (SystemExit, GeneratorExit))


def is_ended_by_exception() -> bool:
    """True at interpreter exit, if an exception that nobody caught has ended the program."""
    has_ended = not threading.main_thread().is_alive()
    return has_ended and getattr(sys, "last_value", None) is not None


def _is_of_signal_handler(error: BaseException) -> bool:
    """True if a Python function that handles a signal raised the error."""
    handlers = set(_handlers())
    return any(frame.f_code in handlers for frame, _ in walk_tb(error.__traceback__))


def _handlers() -> Iterator[CodeType]:
    """The code of the Python functions that handle signals."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            yield code


def _caught_in(error: BaseException) -> FrameType | None:
    """The frame that has caught an exception."""
    trace = error.__traceback__
    return None if trace is None else trace.tb_frame


def _callers(frame: FrameType | None) -> set[FrameType]:
    """The frames that called a frame, directly or not."""
    return set() if frame is None else {caller for caller, _ in walk_stack(frame)} - {frame}


class Block(Protocol):
    """A ``with`` block that restores something at its end.

    An interrupt may come at any point of ``__exit__``, also before its first line, and then
    nothing is restored. A generator that it keeps from ending is worse: it ends when it is deleted,
    and restores what has changed since. So blocks inside a `Guard` are classes; they append
    themselves to ``blocks.open`` before they change anything, and a guard closes those that are
    left over.
    """

    def __exit__(self, *error: object) -> None:
        """Restore what the block has changed, and call ``blocks.ended``.

        It may be called again, also if it was interrupted itself.
        """


class _Blocks(threading.local):
    """The blocks that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.open: list[Block] = []

    def ended(self, block: Block) -> None:
        """Called when a block has restored everything."""
        if self.open[-1:] == [block]:
            self.open.pop()

    def close(self, count: int) -> None:
        """Close all but the outermost ``count``, which an interrupt has kept from closing."""
        while len(self.open) > count:
            block = self.open[-1]
            block.__exit__()
            self.ended(block)


blocks = _Blocks()


class restoring:  # lower case: a context manager that is used like a function
    """Call a function when a block begins, and another one when it ends: a `Block` of the two.

    Args:
        begin: may be interrupted.
        end: undoes what ``begin`` has done so far; may be called again, also if it was interrupted.
    """

    def __init__(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self._begin = begin
        self._end = end

    def __enter__(self) -> None:
        blocks.open.append(self)
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        self._end()
        blocks.ended(self)


class OwnThread:
    """A daemon thread. An interrupt inside ``start`` leaves it started or not.

    The methods of ``threading.Thread`` and the callbacks that run when one is deleted are Python
    code, and an interrupt inside ``Thread.start`` leaves the thread in the lists of ``threading``.
    So a helper thread, which no signal handler interrupts, makes, starts and deletes it.

    Args:
        body: called once in the thread.
        name: the name of the thread.
    """

    def __init__(self, body: Callable[[], object], name: str) -> None:
        self._body = body
        self._name = name
        self._start_lock = _thread.allocate_lock()
        self._end_lock = _thread.allocate_lock()
        self._start_lock.acquire()
        self._end_lock.acquire()

    def start(self) -> None:
        """Start the thread; call it once.

        Raises:
            RuntimeError, MemoryError: The thread cannot be started.
        """
        _thread.start_new_thread(self._help, ())
        self._start_lock.acquire()

    def join(self) -> None:
        """Wait until the thread, which has been started, has ended."""
        with self._end_lock:
            return

    def _help(self) -> None:
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
            self._start_lock.release()
            body()
        else:
            self._start_lock.release()
            is_done.acquire()
            while thread.is_alive():  # `join` would list the helper in `threading` for ever
                time.sleep(0)
            del thread
        finally:
            self._end_lock.release()


class WeakTable(Generic[K, V]):
    """Values by the identity of objects that the table does not keep alive.

    The containers of ``weakref`` register a Python callback, which garbage collection may call at
    any point of the training. This table has none: it drops the entries of deleted objects when it
    has grown to twice its size.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[K], V]] = {}
        self._limit = 32

    def get(self, key: K) -> V | None:
        """The value of an object; None if it has none."""
        entry = self._entries.get(id(key))
        if entry is None:
            return None
        reference, value = entry
        return value if reference() is key else None

    def __setitem__(self, key: K, value: V) -> None:
        reference = weakref.ref(key)
        self._entries[id(key)] = (reference, value)
        if len(self._entries) <= self._limit:
            return
        entries = list(self._entries.items())
        for number, (reference, _) in entries:
            if reference() is None:
                del self._entries[number]
        self._limit = max(32, 2 * len(self._entries))

    def __iter__(self) -> Iterator[K]:
        """The objects that exist."""
        entries = list(self._entries.values())
        for reference, _ in entries:
            key = reference()
            if key is not None:
                yield key
