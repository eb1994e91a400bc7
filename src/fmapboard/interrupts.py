"""What must not be swallowed: exceptions that are meant for the whole program.

fmapboard swallows its own errors, so that they do not reach the training. An exception that is not
an ``Exception`` (``KeyboardInterrupt``, ``SystemExit``) and any exception that a signal handler
raised (``TimeoutError`` of an alarm, one of a Slurm handler) comes at any point of whatever code
runs, and is none of that code's errors. Wherever an exception is swallowed, ``raise_interrupt`` or
``interrupt_in`` comes first.

An exception that another thread raises asynchronously (``PyThreadState_SetAsyncExc``) cannot be
told from one of the code that ran.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any


def interrupt_in(error: BaseException | None) -> BaseException | None:
    """The interrupt that led to an exception, or that it is itself; None if there is none.

    Code that is interrupted may fail in turn, with an exception whose ``__context__`` is the
    interrupt. What is handled already, further out, does not count: an ``except`` block of the
    user's, for example, in which a step is trained.

    Args:
        error: the exception that was caught.
    """
    outer = _frames_outside_of(error)
    seen: set[int] = set()  # a chain may be a circle
    while error is not None and id(error) not in seen:
        if _caught_in(error) in outer:
            return None
        if not isinstance(error, Exception) or is_of_signal_handler(error):
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


def is_of_signal_handler(error: BaseException) -> bool:
    """True if a Python function that handles a signal raised the error."""
    handlers = set(_handlers())
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


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


def _caught_in(error: BaseException) -> int | None:
    """The ``id`` of the frame that has caught an exception."""
    trace = error.__traceback__
    return None if trace is None else id(trace.tb_frame)


def _frames_outside_of(error: BaseException | None) -> set[int]:
    """The ``id`` of each frame that called, directly or not, the one that has caught it."""
    trace = None if error is None else error.__traceback__
    frame = None if trace is None else trace.tb_frame.f_back
    outer = set[int]()
    while frame is not None:
        outer.add(id(frame))
        frame = frame.f_back
    return outer
