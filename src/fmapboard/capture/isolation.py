"""Run side computations inside a user's pass without autograd, autocast or dispatch modes."""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

import torch
from torch._ops import _len_torch_dispatch_stack_pre_dispatch, _pop_mode_from_pre_dispatch
from torch.utils._python_dispatch import _push_mode

from fmapboard.capture.cpu_threads import one_thread, thread_policy


class Block(Protocol):
    """A ``with`` block that restores something at its end.

    An interrupt may come at any point of ``__exit__``, also before its first line, and then
    nothing is restored. A generator that it keeps from ending is worse: it ends when it is deleted,
    and restores what has changed since. So blocks inside a `Guard` are classes; they register with
    ``block_begins`` before they change anything, and a guard closes those that are left over.
    """

    def close(self) -> None:
        """Restore what the block has changed, and call ``block_ended``.

        It may be called again, also if it was interrupted itself.
        """


class _Open(threading.local):
    """The blocks that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []


_open = _Open()


def block_begins(block: Block) -> None:
    """Register a block of this thread."""
    _open.blocks.append(block)


def block_ended(block: Block) -> None:
    """Called when a block has restored everything."""
    if _open.blocks and _open.blocks[-1] is block:
        _open.blocks.pop()


def blocks_open() -> int:
    """The number of blocks that this thread is in."""
    return len(_open.blocks)


def close_blocks(count: int) -> None:
    """Close all but the outermost ``count`` blocks, which an interrupt has kept from closing."""
    while len(_open.blocks) > count:
        block = _open.blocks[-1]
        block.close()
        block_ended(block)


class aside:  # lower case: a context manager that is used like a function
    """Run a block without autograd, autocast or dispatch modes.

    Selective checkpointing records every operation it sees, even without gradients; with dispatch
    modes disabled it sees none of fmapboard's. On the CPU the block runs on one thread, or on
    several if it reads a large tensor.

    Args:
        device_type: the type of device that the block computes on.
        nbytes: how many bytes it reads (see ``cpu_threads``).
    """

    __slots__ = ("_begun", "_device_type", "_had_grad", "_modes", "_nbytes", "_one_thread")

    def __init__(self, device_type: str, nbytes: int = 0) -> None:
        self._device_type, self._nbytes = device_type, nbytes
        self._one_thread: one_thread | None = None
        self._begun: float | None = None
        self._modes: _Modes | None = None

    def __enter__(self) -> None:
        # ``torch.no_grad`` does the same, but alone takes 1.5 µs.
        self._had_grad = torch.is_grad_enabled()
        block_begins(self)
        torch._C._set_grad_enabled(False)
        try:
            self._choose_threads()
            if _modes_are_active() or torch.is_autocast_enabled(self._device_type):
                self._modes = _Modes(self._device_type)
                self._modes.disable()
        except BaseException:
            self.close()
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
        if self._begun is not None:
            thread_policy.record(time.perf_counter() - self._begun, self._nbytes)
        self.close()

    def close(self) -> None:
        """Restore what the block has changed; a second call changes nothing."""
        if self._modes is not None:
            self._modes.restore()
        if self._one_thread is not None:
            self._one_thread.__exit__()
        torch._C._set_grad_enabled(self._had_grad)
        block_ended(self)


class _Modes:
    """The dispatch modes of this thread and its autocast state for a type of device.

    Context managers of torch do the same, but if an interrupt keeps a generator from ending, it
    ends when it is deleted, and would then restore the modes a second time.
    """

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type
        self._autocasts = torch.is_autocast_enabled(device_type)
        self._caches = torch.is_autocast_cache_enabled()
        count = torch._C._len_torch_dispatch_stack()
        self._modes = [torch._C._get_dispatch_stack_at(place) for place in range(count)]
        self._before_dispatch: list[Any] = []  # the innermost first

    def disable(self) -> None:
        """Disable all of them."""
        for _ in range(_count_before_dispatch()):
            self._before_dispatch.append(_pop_mode_from_pre_dispatch())  # type: ignore[no-untyped-call]  # torch
        _set_dispatch_modes([])
        torch.set_autocast_enabled(self._device_type, False)
        torch.set_autocast_cache_enabled(False)

    def restore(self) -> None:
        """Restore all of them; a second call changes nothing."""
        torch.set_autocast_cache_enabled(self._caches)
        torch.set_autocast_enabled(self._device_type, self._autocasts)
        _set_dispatch_modes(self._modes)
        while self._before_dispatch:
            _push_mode(self._before_dispatch.pop())


def _set_dispatch_modes(modes: list[Any]) -> None:
    while torch._C._len_torch_dispatch_stack():
        torch._C._pop_torch_dispatch_stack(None)
    for mode in modes:
        torch._C._push_on_torch_dispatch_stack(mode)


def _count_before_dispatch() -> int:
    count: int = _len_torch_dispatch_stack_pre_dispatch()  # type: ignore[no-untyped-call]  # torch
    return count


def _modes_are_active() -> bool:
    return bool(torch._C._len_torch_dispatch_stack() or _count_before_dispatch())
