"""Times fmapboard's work on the training thread and keeps its errors out of the training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeGuard

from fmapboard.capture.exits import is_of_signal
from fmapboard.capture.memory_pressure import is_out_of_memory
from fmapboard.errors import WarnOnce

ERRORS_UNTIL_DISABLED = 3
CONSEQUENCE = "it is not logged; training continues"


class Stopwatch:
    """Sums the milliseconds that fmapboard spends on the training thread.

    ``with stopwatch:`` times a block; nested blocks are not counted twice.
    """

    __slots__ = ("_begun", "_depth", "ms")

    def __init__(self) -> None:
        self.ms = self._begun = 0.0
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._begun = time.perf_counter()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.ms += (time.perf_counter() - self._begun) * 1e3


class _Guarded:
    """Times a block and passes its exceptions to the guard instead of raising them."""

    __slots__ = ("_about", "_guard", "_runs_model")

    def __init__(self, about: str, guard: Guard, *, runs_model: bool = False) -> None:
        self._about, self._guard, self._runs_model = about, guard, runs_model

    def __enter__(self) -> None:
        self._guard.stopwatch.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        try:
            if isinstance(error, Exception) or self._is_exit_of_model(error):
                self._guard.failed(self._about, error)
                return True
            return False
        finally:
            self._guard.stopwatch.__exit__()

    def _is_exit_of_model(self, error: BaseException | None) -> TypeGuard[SystemExit]:
        # The SystemExit of a signal handler is meant for the training.
        return self._runs_model and isinstance(error, SystemExit) and not is_of_signal(error)


class Guard:
    """Runs fmapboard's work inside the user's training step.

    ``with guard("conv1"):`` times the block. An exception inside is swallowed and reported once
    under that name. After three failures, ``is_disabled`` returns True for the name.

    Args:
        warn: where errors are reported.

    Attributes:
        stopwatch: sums the time of all blocks; replaced for each logged step.
        out_of_memory: called with the error, instead of reporting it, if memory of a device runs
            out in a block; None treats it as any other error.
        gave_up: disables every name; the owner sets it.
    """

    def __init__(self, warn: WarnOnce) -> None:
        self._warn = warn
        self._errors: dict[str, int] = {}
        self.stopwatch = Stopwatch()
        self.out_of_memory: Callable[[Exception], None] | None = None
        self.gave_up = False

    def __call__(self, about: str) -> _Guarded:
        """A context manager that guards a block under a name: a layer's label, or the task."""
        return _Guarded(about, self)

    def extra_pass(self, about: str) -> _Guarded:
        """Guard a forward pass that the training does not run, as ``__call__`` does.

        A SystemExit of the model is handled like an exception; that of a signal handler is raised.
        """
        return _Guarded(about, self, runs_model=True)

    @property
    def has_failed(self) -> bool:
        """True once any guarded block has failed."""
        return bool(self._errors)

    def is_disabled(self, about: str) -> bool:
        """True if blocks of this name have failed too often to be tried again."""
        return self.gave_up or self._errors.get(about, 0) >= ERRORS_UNTIL_DISABLED

    def hint(self, about: str, text: str) -> None:
        """Log a warning, once per ``about``."""
        self._warn.warn(about, text)

    def failed(self, about: str, error: Exception | SystemExit) -> None:
        """Report an error and count it."""
        if (
            self.out_of_memory is not None
            and isinstance(error, Exception)
            and is_out_of_memory(error)
        ):
            self.out_of_memory(error)
            return
        self._errors[about] = self._errors.get(about, 0) + 1
        self._warn.error(about, error, CONSEQUENCE)
