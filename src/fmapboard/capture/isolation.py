"""Run side computations inside a user's pass without autograd, autocast or dispatch modes."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import torch
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.capture.cpu_threads import one_thread, thread_policy


class aside:  # lower case: a context manager that is used like a function
    """Run a block without autograd, autocast or dispatch modes.

    Selective checkpointing records every operation it sees, even without gradients; with dispatch
    modes disabled it sees none of fmapboard's. On the CPU the block runs on one thread, or on
    several if it reads a large tensor.

    Args:
        device_type: the type of device that the block computes on.
        nbytes: how many bytes it reads (see ``cpu_threads``).
    """

    __slots__ = ("_begun", "_device_type", "_had_grad", "_left", "_nbytes", "_one_thread")

    def __init__(self, device_type: str, nbytes: int = 0) -> None:
        self._device_type, self._nbytes = device_type, nbytes
        self._one_thread: one_thread | None = None
        self._begun: float | None = None
        self._left: contextlib.ExitStack | None = None

    def __enter__(self) -> None:
        # ``torch.no_grad`` does the same, but alone takes 1.5 µs.
        self._had_grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        try:
            self._choose_threads()
            # Both are expensive to enter and hooks run often: only if a mode or autocast is active.
            if _modes_are_active() or torch.is_autocast_enabled(self._device_type):
                self._left = contextlib.ExitStack()
                self._left.enter_context(_disable_current_modes())
                autocast = torch.autocast(self._device_type, enabled=False, cache_enabled=False)
                self._left.enter_context(autocast)
        except BaseException:
            self.__exit__()
            raise

    def _choose_threads(self) -> None:
        if self._device_type != "cpu":
            return
        if thread_policy.allows_several(self._nbytes):
            self._begun = time.perf_counter()
        else:
            self._one_thread = one_thread()
            self._one_thread.__enter__()

    def __exit__(self, *error: Any) -> None:
        try:
            if self._left is not None:
                self._left.close()
            if self._one_thread is not None:
                self._one_thread.__exit__()
            if self._begun is not None:
                thread_policy.record(time.perf_counter() - self._begun, self._nbytes)
        finally:
            torch._C._set_grad_enabled(self._had_grad)


def _modes_are_active() -> bool:
    before_dispatch = _len_torch_dispatch_stack_pre_dispatch()  # type: ignore[no-untyped-call]  # torch
    return bool(torch._C._len_torch_dispatch_stack() or before_dispatch)
