"""Hooks around each update of weights; a file of its own, as it changes what torch itself keeps."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.optim.optimizer as torch_optimizer
from torch.optim.optimizer import Optimizer

Function = Callable[..., Any]


class _Hooks(UserDict[int, Function]):
    """torch's dictionary of hooks on all optimizers, followed by fmapboard's own hooks.

    An optimizer iterates over torch's dictionary during its step, and adding to or removing from it
    makes such an iteration raise, in whichever thread it runs. So we never change that dictionary:
    while fmapboard listens, the module's attribute refers to this object. Hooks that others add or
    remove in the meantime go to torch's dictionary.

    Attributes:
        data: torch's dictionary, not a copy.
        ours: the hooks of fmapboard.
    """

    def __init__(self, torchs: dict[int, Function]) -> None:
        self.data = torchs
        self.ours: tuple[Function, ...] = ()

    def values(self) -> Any:
        """A snapshot of all hooks, which later changes do not affect."""
        return (*self.data.values(), *self.ours)

    def __len__(self) -> int:
        return len(self.data) + len(self.ours)


_NAMES = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
_hooks = {name: _Hooks(getattr(torch_optimizer, name)) for name in _NAMES}
_lock = threading.RLock()  # reentrant: garbage collection may end a logger while it is held


def listen(*hooks: Function) -> None:
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


def stop_listening(*hooks: Function) -> None:
    """Remove hooks; those that are not installed, or only in part after an interrupt, likewise.

    A hook that is removed while an optimizer steps may still be called after that step.
    """
    with _lock:
        for name, ours in _hooks.items():
            ours.ours = tuple([hook for hook in ours.ours if hook not in hooks])
            if not ours.ours and getattr(torch_optimizer, name) is ours:
                setattr(torch_optimizer, name, ours.data)


class StepHook:
    """A hook after each completed step of one optimizer, whose functions can be replaced.

    An optimizer iterates over its hooks, so adding or removing one in a hook makes the step raise.
    Replacing what is there under its key does not.

    Args:
        optimizer: its hooks keep the functions alive; this object keeps neither.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._keys: tuple[int, ...] = ()
        self._handle = optimizer.register_step_post_hook(_nothing)

    def call(self, key: int, function: Function) -> None:
        """Call one more function from the next step on, with ``(optimizer, args, kwargs)``.

        Args:
            key: what to pass to ``drop``.
            function: torch.compile calls it inside a compiled step, and does not trace it.
        """
        untraced = torch.compiler.disable(function)  # type: ignore[no-untyped-call]  # torch
        self._replace({**self._functions(), key: untraced})

    def drop(self, key: int) -> None:
        """Call the function of a key no more; without functions, the hook is removed."""
        functions = self._functions()
        functions.pop(key, None)
        if functions:
            self._replace(functions)
        else:
            self._handle.remove()

    def _functions(self) -> dict[int, Function]:
        hooks = self._handle.hooks_dict_ref() or {}
        called = hooks.get(self._handle.id)
        if called is None or not self._keys:
            return {}
        functions = called.functions if isinstance(called, _Each) else (called,)
        return dict(zip(self._keys, functions, strict=True))

    def _replace(self, functions: dict[int, Function]) -> None:
        hooks = self._handle.hooks_dict_ref()
        if hooks is None or self._handle.id not in hooks:
            return
        self._keys = tuple(functions)
        called = tuple(functions.values())
        hooks[self._handle.id] = called[0] if len(called) == 1 else _Each(called)


class _Each(NamedTuple):
    """Calls several functions with the same arguments."""

    functions: tuple[Function, ...]

    def __call__(self, *arguments: Any) -> None:
        for function in self.functions:
            function(*arguments)


def _nothing(*arguments: Any) -> None:
    """What a hook calls as long as it has no function."""
