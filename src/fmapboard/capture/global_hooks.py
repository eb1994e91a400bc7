"""Pre-step hooks on all optimizers, without changing torch's dictionary of such hooks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch.optim.optimizer as torch_optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

PreHook = Callable[..., Any]
_NAME = "_global_optimizer_pre_hooks"


class _Combined(MutableMapping[int, PreHook]):
    """Replaces torch's dictionary of hooks: torch's own hooks, followed by fmapboard's.

    An optimizer iterates over torch's dictionary during its step, and adding to or removing from an
    ``OrderedDict`` makes such an iteration raise, in whichever thread it runs. So that dictionary
    is never changed: while a hook of fmapboard is installed, the module's attribute refers to this
    object. Hooks that others add or remove in the meantime go to torch's dictionary.
    """

    def __init__(self, original: MutableMapping[int, PreHook]) -> None:
        self.original = original
        self.ours: dict[int, PreHook] = {}

    def values(self) -> Any:
        """A snapshot of all hooks, which later changes do not affect."""
        return (*self.original.values(), *self.ours.values())

    def __getitem__(self, key: int) -> PreHook:
        return self.original[key]

    def __setitem__(self, key: int, hook: PreHook) -> None:
        self.original[key] = hook

    def __delitem__(self, key: int) -> None:
        del self.original[key]

    def __iter__(self) -> Iterator[int]:
        return iter((*self.original,))

    def __len__(self) -> int:
        return len(self.original) + len(self.ours)


_keys = itertools.count()
_lock = threading.RLock()  # reentrant: the garbage collector may remove a hook while it is held
_combined = _Combined(getattr(torch_optimizer, _NAME, {}))


def before_each_optimizer_step(hook: PreHook) -> Callable[[], None]:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer in the process.

    May be called from any thread at any time, also while other threads train.

    Returns:
        A function that removes the hook; calling it again does nothing.
    """
    if not hasattr(torch_optimizer, _NAME):
        return register_optimizer_step_pre_hook(hook).remove
    key = next(_keys)
    with _lock:
        _combined.ours[key] = hook
        current = getattr(torch_optimizer, _NAME)
        if current is not _combined:
            _combined.original = current
            setattr(torch_optimizer, _NAME, _combined)
    return lambda: _remove(key)


def _remove(key: int) -> None:
    with _lock:
        _combined.ours.pop(key, None)
        if not _combined.ours and getattr(torch_optimizer, _NAME) is _combined:
            setattr(torch_optimizer, _NAME, _combined.original)
