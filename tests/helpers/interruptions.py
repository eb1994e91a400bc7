"""Interrupts at a chosen point: at each line, call and return of fmapboard's own code in turn."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import linecache
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import fmapboard

OURS = str(Path(fmapboard.__file__).parent)
_TAKES_LOCK = re.compile(r"\s*with .*_lock\b", re.IGNORECASE)


class TimesUp(Exception):
    """What a user's signal handler raises, such as ``TimeoutError``."""


def on_alarm(number: int, frame: FrameType | None) -> None:
    """A user's signal handler."""
    raise TimesUp(number)


def ctrl_c(number: int, frame: FrameType | None) -> None:
    """Python's handler of Ctrl-C."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Register a signal handler inside the block."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@functools.cache
def _exit_in_c(path: str, line: int) -> str:
    """What the block that a line begins leaves in C code: "torch", "lock", or nothing."""
    text = linecache.getline(path, line)
    if "with torch._C." in text:
        return "torch"
    return "lock" if _TAKES_LOCK.match(text) else ""


class Interruption:
    """Calls a signal handler at the n-th line, call or return of fmapboard's code in this thread.

    Garbage is not collected meanwhile: an earlier training's finalizer would be entered too, and
    Python discards what is raised in one.

    Attributes:
        at: where the handler was called: file, line and event; empty if the code ended before.
    """

    def __init__(self, number: int, handler: Callable[[int, FrameType | None], None]) -> None:
        self._left, self._handler = number, handler
        self._inside: set[tuple[int, int]] = set()  # frame and line of a block that holds a lock
        self.at = ""

    def __enter__(self) -> Interruption:
        self._before = sys.gettrace()
        gc.disable()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, value: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(OURS):
            return None
        if event == "call" and self._inside:  # another frame may have had its address
            self._inside = {held for held in self._inside if held[0] != id(frame)}
        # A generator that is deleted before its end is entered too, but not by signal handlers.
        is_generator = bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
        leaves = event == "line" and self._leaves(frame)
        if (event == "line" and not leaves) or (event in ("call", "return") and not is_generator):
            self._left -= 1
            if self._left < 0:
                sys.settrace(None)
                self.at = f"{path.removeprefix(OURS)}:{frame.f_lineno} {event}"
                self._handler(signal.SIGALRM, frame)
        return self._trace

    def _leaves(self, frame: FrameType) -> bool:
        """True between the body and the exit of a block whose exit is C code.

        Python calls no signal handler there, and an exception would leave a lock locked.
        """
        exit_in_c = _exit_in_c(frame.f_code.co_filename, frame.f_lineno)
        if exit_in_c == "torch":
            return not torch._C._is_torch_function_enabled()
        if exit_in_c != "lock":
            return False
        self._inside ^= {(id(frame), frame.f_lineno)}
        return (id(frame), frame.f_lineno) not in self._inside
