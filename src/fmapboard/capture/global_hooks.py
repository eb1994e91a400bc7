"""Step hooks on all optimizers, without changing torch's dictionaries of such hooks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch.optim.optimizer as torch_optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

StepHook = Callable[..., Any]
_NAME = "_global_optimizer_pre_hooks"
_NAME_AFTER = "_global_optimizer_post_hooks"


class _Combined(MutableMapping[int, StepHook]):
    """Replaces torch's dictionary of hooks: torch's own hooks, followed by fmapboard's.

    An optimizer iterates over torch's dictionary during its step, and adding to or removing from an
    ``OrderedDict`` makes such an iteration raise, in whichever thread it runs. So that dictionary
    is never changed: while a hook of fmapboard is installed, the module's attribute refers to this
    object. Hooks that others add or remove in the meantime go to torch's dictionary.
    """

    def __init__(self, original: MutableMapping[int, StepHook]) -> None:
        self.original = original
        self.ours: dict[int, StepHook] = {}

    def values(self) -> Any:
        """A snapshot of all hooks, which later changes do not affect."""
        return (*self.original.values(), *self.ours.values())

    def __getitem__(self, key: int) -> StepHook:
        return self.original[key]

    def __setitem__(self, key: int, hook: StepHook) -> None:
        self.original[key] = hook

    def __delitem__(self, key: int) -> None:
        del self.original[key]

    def __iter__(self) -> Iterator[int]:
        return iter((*self.original,))

    def __len__(self) -> int:
        return len(self.original) + len(self.ours)


_keys = itertools.count()
_lock = threading.RLock()  # reentrant: the garbage collector may remove a hook while it is held
_combined = {name: _Combined(getattr(torch_optimizer, name, {})) for name in (_NAME, _NAME_AFTER)}


def before_each_optimizer_step(hook: StepHook) -> Callable[[], None]:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer in the process.

    May be called from any thread at any time, also while other threads train.

    Returns:
        A function that removes the hook, as ``remove_step_hook`` does.
    """
    return _added(_NAME, hook, register_optimizer_step_pre_hook)


def after_each_optimizer_step(hook: StepHook) -> Callable[[], None]:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer in the process.

    As ``before_each_optimizer_step``. An optimizer's own post-step hooks are called first. A hook
    that is removed while they run is still called after that step.
    """
    return _added(_NAME_AFTER, hook, register_optimizer_step_post_hook)


def _added(name: str, hook: StepHook, register: Callable[[StepHook], Any]) -> Callable[[], None]:
    if not hasattr(torch_optimizer, name):
        remove: Callable[[], None] = register(hook).remove
        return remove
    combined = _combined[name]
    with _lock:
        key = next(_keys)
        combined.ours[key] = hook
        current = getattr(torch_optimizer, name)
        if current is not combined:
            combined.original = current
            setattr(torch_optimizer, name, combined)
    return lambda: remove_step_hook(hook)


def remove_step_hook(hook: StepHook) -> None:
    """Remove a hook that one of the functions above has added; otherwise do nothing.

    An interrupt may have kept that function from returning.
    """
    for name in _combined:
        _remove(name, hook)


def _remove(name: str, hook: StepHook) -> None:
    combined = _combined[name]
    with _lock:
        for key in [key for key, one in combined.ours.items() if one is hook]:
            combined.ours.pop(key, None)
        if not combined.ours and getattr(torch_optimizer, name, None) is combined:
            setattr(torch_optimizer, name, combined.original)
