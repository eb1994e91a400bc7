"""Writers that fail at a chosen step, or wait until the test lets them go on."""

from __future__ import annotations

import threading

from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

LIMIT = 30.0  # s; only a broken worker takes that long


class FullDiskWriter(MemoryWriter):
    """Raises "No space left on device" at one step and keeps all others in memory."""

    def __init__(self, full_at: int) -> None:
        super().__init__()
        self.full_at = full_at

    def write(self, step: LoggedStep) -> None:
        if step.step == self.full_at:
            raise OSError(28, "No space left on device")
        super().write(step)


class HeldWriter(MemoryWriter):
    """Waits in `write` until ``go_on`` is set; notes which threads call it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.threads: list[str] = []

    def write(self, step: LoggedStep) -> None:
        self.begun.set()
        assert self.go_on.wait(LIMIT)
        self.threads.append(threading.current_thread().name)
        super().write(step)
