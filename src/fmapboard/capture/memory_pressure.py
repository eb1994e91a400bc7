"""``MemoryPressure``: logs less often after fmapboard ran out of a device's memory."""

from __future__ import annotations

import torch

from fmapboard.errors import WarnOnce, first_line

MOST_FAILURES = 5
"""After this many failures in a row, no further step is tried."""


class MemoryPressure:
    """Decides which due steps are tried after a step failed for want of memory.

    After the k-th failure in a row, 2**k - 1 due steps are left out, and after the fifth, all. A
    step that succeeds resets the count.

    Args:
        warn: where the first failure is reported, and that no further step is tried.
    """

    def __init__(self, warn: WarnOnce) -> None:
        self._warn = warn
        self._failures = self._left_out = 0

    def allows_step(self) -> bool:
        """True if the next due step is to be tried; called once for each."""
        if self._failures >= MOST_FAILURES:
            return False
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def failed(self, step: int, error: Exception) -> None:
        """Called when memory ran out in a step."""
        self._failures += 1
        self._left_out = 2**self._failures - 1
        self._warn.error(
            "memory",
            error,
            f"step {step} is not logged; training continues, and later steps are tried less and "
            "less often. To need less memory, watch fewer layers (layers=), log less of each "
            "(samples=, max_channels=, inputs=False, activation_gradients=False), or use smaller "
            "batches",
        )
        if self._failures == MOST_FAILURES:
            self._warn.warn(
                "memory for good",
                f"step {step}: fmapboard ran out of memory {MOST_FAILURES} times in a row "
                f"({first_line(error)}); no further step is logged",
            )

    def succeeded(self) -> None:
        """Called when a step was collected completely."""
        self._failures = self._left_out = 0


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory of a device could not be allocated."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    # MPS, and libraries that allocate by themselves, raise a RuntimeError.
    return isinstance(error, RuntimeError) and "out of memory" in str(error)
