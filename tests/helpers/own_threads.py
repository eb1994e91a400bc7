"""The threads that fmapboard has started, and their scheduling priority."""

from __future__ import annotations

import os
import threading


def own_threads() -> list[threading.Thread]:
    """All running threads of fmapboard in this process, but for those of the tab's plugin."""
    own = [one for one in threading.enumerate() if one.name.startswith("fmapboard")]
    return [one for one in own if not one.name.startswith("fmapboard-nudge")]  # a pool, kept


def own_priority() -> int:
    """Nice value of the calling thread; Linux only."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
