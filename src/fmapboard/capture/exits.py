"""Tell a SystemExit that code raised from one of a signal handler."""

from __future__ import annotations

import functools
import signal
from collections.abc import Iterator
from types import CodeType
from typing import Any


def is_of_signal(error: SystemExit) -> bool:
    """True if a signal handler raised the error, as SIGTERM's often does, in whatever code ran."""
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
