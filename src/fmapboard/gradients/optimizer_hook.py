"""Hooks around each update of weights; a file of its own, as it changes what torch itself keeps."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable
from typing import Any

import torch.optim.optimizer as torch_optimizer

StepHook = Callable[..., Any]


class _Hooks(UserDict[int, StepHook]):
    """torch's dictionary of hooks on all optimizers, followed by fmapboard's own hooks.

    An optimizer iterates over torch's dictionary during its step, and adding to or removing from it
    makes such an iteration raise, in whichever thread it runs. So we never change that dictionary:
    while fmapboard listens, the module's attribute refers to this object. Hooks that others add or
    remove in the meantime go to torch's dictionary.

    Attributes:
        data: torch's dictionary, not a copy.
        ours: the hooks of fmapboard.
    """

    def __init__(self, torchs: dict[int, StepHook]) -> None:
        self.data = torchs
        self.ours: tuple[StepHook, ...] = ()

    def values(self) -> Any:
        """A snapshot of all hooks, which later changes do not affect."""
        return (*self.data.values(), *self.ours)

    def __len__(self) -> int:
        return len(self.data) + len(self.ours)


_NAMES = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
_hooks = {name: _Hooks(getattr(torch_optimizer, name)) for name in _NAMES}
_lock = threading.RLock()  # reentrant: garbage collection may end a logger while it is held


def listen(*hooks: StepHook) -> None:
    """Call hooks before and after every step of every optimizer in the process.

    May be called from any thread at any time, also while other threads train. An optimizer's own
    hooks after the step are called first.

    Args:
        hooks: the one before and the one after, called with ``(optimizer, args, kwargs)``.
    """
    with _lock:
        for name, hook in zip(_NAMES, hooks, strict=True):
            ours = _hooks[name]
            current = getattr(torch_optimizer, name)
            ours.ours = (*ours.ours, hook)
            if current is not ours:
                ours.data = current
                setattr(torch_optimizer, name, ours)


def stop_listening(*hooks: StepHook) -> None:
    """Remove hooks; those that are not installed, or only in part after an interrupt, likewise.

    A hook that is removed while an optimizer steps may still be called after that step.
    """
    with _lock:
        for name, ours in _hooks.items():
            ours.ours = tuple([hook for hook in ours.ours if hook not in hooks])
            if not ours.ours and getattr(torch_optimizer, name) is ours:
                setattr(torch_optimizer, name, ours.data)
