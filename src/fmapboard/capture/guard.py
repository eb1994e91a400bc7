"""Times fmapboard's work on the training thread and keeps its errors out of the training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from fmapboard.errors import WarnOnce, first_line
from fmapboard.interrupts import blocks, interrupt_in

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
        self._failures = 0
        self._left_out = 0.0
        self._asked: int | None = None
        self._answer = True

    def allows_step(self, step: int) -> bool:
        """True if a due step is to be tried.

        Args:
            step: its number; asked again for the same step, the answer is the same.
        """
        if step != self._asked:
            self._asked = step
            self._answer = not self._left_out
            self._left_out -= not self._answer
        return self._answer

    def failed(self, step: int, error: Exception) -> None:
        """Called when memory ran out in a step."""
        self._failures += 1
        self._asked = None
        self._left_out = 2**self._failures - 1 if self._failures < MOST_FAILURES else math.inf
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
                f"({first_line(error)}); no further step is logged. To log the rest, call watch() "
                "again, with fewer layers (layers=) or less of each",
            )

    def succeeded(self) -> None:
        """Called when a step was collected completely."""
        self._failures = 0
        self._left_out = 0.0


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory of a device could not be allocated."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    # MPS, and libraries that allocate by themselves, raise a RuntimeError.
    return isinstance(error, RuntimeError) and "out of memory" in str(error)


ERRORS_UNTIL_DISABLED = 3
CONSEQUENCE = "it is not logged; training continues"


@dataclass(slots=True)
class Stopwatch:
    """Sums the time that fmapboard spends on the training thread.

    Attributes:
        ms: milliseconds in all blocks that have ended.
        is_running: True inside a block, so that nested blocks are not counted twice.
    """

    ms: float = 0.0
    is_running: bool = False


class _Guarded:
    """Times a block and passes its exceptions to the guard, but raises interrupts.

    An interrupt may have come at any point, also while a block was being left: what that has not
    restored is restored here.

    Attributes:
        about: the name under which errors are reported.
        guard: reports them.
    """

    # No __init__: a logged step has more than one of these per watched tensor, and the guard that
    # makes them sets both attributes faster.
    __slots__ = ("_begun", "_blocks", "_had_grad", "_stopwatch", "about", "guard")
    about: str
    guard: Guard

    def __enter__(self) -> None:
        self._blocks = len(blocks.open)
        self._had_grad = torch.is_grad_enabled()
        self._stopwatch = self.guard.stopwatch
        self._begun = None if self._stopwatch.is_running else time.perf_counter()
        self._stopwatch.is_running = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        try:
            if error is None:
                return False
            blocks.close(self._blocks)
            torch._C._set_grad_enabled(self._had_grad)
            interrupt = interrupt_in(error)
            if interrupt is error:
                return False
            if interrupt is not None:
                raise interrupt
            assert isinstance(error, Exception)  # anything else is an interrupt
            self.guard.failed(self.about, error)
            return True
        finally:
            if self._begun is not None:
                self._stopwatch.ms += (time.perf_counter() - self._begun) * 1e3
                self._stopwatch.is_running = False


class Guard:
    """Runs fmapboard's work inside the user's training step.

    ``with guard("conv1"):`` times the block. An exception inside is swallowed and reported once
    under that name. After three failures, ``is_disabled`` returns True for the name. An interrupt
    (see ``interrupts``) is raised, also where it has led to another exception.

    Args:
        warn: where errors are reported.

    Attributes:
        hint: logs a warning; see ``WarnOnce.warn``.
        stopwatch: sums the time of all blocks; replaced for each logged step.
        out_of_memory: called with the error, instead of reporting it, if memory of a device runs
            out in a block; None treats it as any other error.
        gave_up: disables every name; the owner sets it.
    """

    def __init__(self, warn: WarnOnce) -> None:
        self._warn = warn
        self.hint = warn.warn
        self._errors: dict[str, int] = {}
        self.stopwatch = Stopwatch()
        self.out_of_memory: Callable[[Exception], None] | None = None
        self.gave_up = False

    def __call__(self, about: str) -> _Guarded:
        """A context manager that guards a block under a name: a layer's label, or the task."""
        guarded = _Guarded()
        guarded.about = about
        guarded.guard = self
        return guarded

    @property
    def has_failed(self) -> bool:
        """True once any guarded block has failed."""
        return bool(self._errors)

    def is_disabled(self, about: str) -> bool:
        """True if blocks of this name have failed too often to be tried again."""
        return self.gave_up or self._errors.get(about, 0) >= ERRORS_UNTIL_DISABLED

    def failed(self, about: str, error: Exception) -> None:
        """Report an error and count it."""
        if self.out_of_memory is not None and is_out_of_memory(error):
            self.out_of_memory(error)
            return
        self._errors[about] = self._errors.get(about, 0) + 1
        self._warn.error(about, error, CONSEQUENCE)
