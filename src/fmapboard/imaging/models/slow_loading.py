"""Loading a file that may take for ever: it is named after a minute, and Ctrl-C ends the command.

A pickle of a few hundred bytes can keep the interpreter busy for years inside one C function, for
example with the hash of a deeply nested tuple. No thread and no Python signal handler runs
meanwhile. So another process waits for the minute, and Ctrl-C has the effect that the system gives
it, which is to end the process.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

SECONDS = 60.0
"""Time after which a file that is still loading is named."""

_WAIT = """
import os, sys, time
parent = os.getppid()
time.sleep(float(sys.argv[1]))
if os.getppid() == parent:
    print(sys.argv[2], file=sys.stderr, flush=True)
"""


@contextlib.contextmanager
def loading(path: Path) -> Iterator[None]:
    """Name a file on stderr if the block takes longer than `SECONDS`; Ctrl-C ends the process.

    Args:
        path: The file or folder that the block loads. Nothing may be open for writing that has not
            been flushed.
    """
    text = f"still loading {str(path)!r} after {SECONDS:.0f} s; Ctrl-C stops it"
    command = [sys.executable, "-I", "-S", "-c", _WAIT, str(SECONDS), text]
    watch = None
    with contextlib.suppress(OSError):  # without another process, the file is not named
        watch = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with _interrupts_end_the_process():
            yield
    finally:
        if watch is not None:
            watch.kill()
            watch.wait()


@contextlib.contextmanager
def _interrupts_end_the_process() -> Iterator[None]:
    """Let the system handle SIGINT, unless someone else than Python does, or in another thread."""
    is_main = threading.current_thread() is threading.main_thread()
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_main and is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_main and is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
