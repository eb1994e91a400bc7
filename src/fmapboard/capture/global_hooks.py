"""torch's pre-step hooks of all optimizers, without changing the dictionary that holds them."""

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
    """Stands in for torch's dictionary of hooks: the hooks in it, then ours.

    An optimizer iterates torch's dictionary during its step, and an `OrderedDict` that changes
    meanwhile raises there, in whichever thread that is. So torch's dictionary is never changed:
    its name refers to this object while a hook of ours is installed. What others register or
    remove meanwhile goes to torch's dictionary.
    """

    def __init__(self, torchs: MutableMapping[int, PreHook]) -> None:
        self.torchs = torchs
        self.ours: dict[int, PreHook] = {}

    def values(self) -> Any:
        """A snapshot that no later change can disturb."""
        return (*self.torchs.values(), *self.ours.values())

    def __getitem__(self, key: int) -> PreHook:
        return self.torchs[key]

    def __setitem__(self, key: int, hook: PreHook) -> None:
        self.torchs[key] = hook

    def __delitem__(self, key: int) -> None:
        del self.torchs[key]

    def __iter__(self) -> Iterator[int]:
        return iter((*self.torchs,))

    def __len__(self) -> int:
        return len(self.torchs) + len(self.ours)


_keys = itertools.count()
_lock = threading.RLock()  # reentrant: the garbage collector may remove a hook while it is held
_combined = _Combined(getattr(torch_optimizer, _NAME, {}))


def before_each_optimizer_step(hook: PreHook) -> Callable[[], None]:
    """Call ``hook(optimizer, args, kwargs)`` before each step of any optimizer of the process.

    Any thread may call this at any time, also while other threads train.

    Returns:
        what removes the hook; a second call does nothing.
    """
    if not hasattr(torch_optimizer, _NAME):
        return register_optimizer_step_pre_hook(hook).remove
    key = next(_keys)
    with _lock:
        _combined.ours[key] = hook
        current = getattr(torch_optimizer, _NAME)
        if current is not _combined:
            _combined.torchs = current
            setattr(torch_optimizer, _NAME, _combined)
    return lambda: _remove(key)


def _remove(key: int) -> None:
    with _lock:
        _combined.ours.pop(key, None)
        if not _combined.ours and getattr(torch_optimizer, _NAME) is _combined:
            setattr(torch_optimizer, _NAME, _combined.torchs)
