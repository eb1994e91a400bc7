"""The threads that fmapboard has started, and their scheduling priority."""

from __future__ import annotations

import os
import threading


def own_threads() -> list[threading.Thread]:
    """All running threads of fmapboard in this process."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("fmapboard")]


def own_priority() -> int:
    """Nice value of the calling thread; Linux only."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
