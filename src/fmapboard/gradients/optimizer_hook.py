"""Hooks right before and right after an optimizer updates the weights."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import partial
from typing import Any, Protocol

import torch
import torch.optim.optimizer as torch_optimizer
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.compiled import is_capturing
from fmapboard.capture.module_calls import untraced

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


class StepListener(Protocol):
    """Receives every optimizer step of the process, on the thread that takes it; must not raise."""

    def about_to_step(self, optimizer: Optimizer, has_closure: bool) -> bool:
        """Called before an optimizer steps; return False to ignore this step."""

    def gradients_complete(self, optimizer: Optimizer) -> None:
        """Called when the gradients are final, before the optimizer updates the weights.

        With a closure (LBFGS), that is after its first evaluation.
        """

    def step_ended(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has updated the weights."""


class OptimizerHook:
    """Notifies a listener of every optimizer step in the process while it is armed.

    Args:
        listener: held by a weak reference.

    Attributes:
        in_closure: True while an optimizer evaluates its closure.
    """

    def __init__(self, listener: StepListener) -> None:
        self._listener = weakref.ref(listener)
        self._removers: list[Callable[[], object]] = []
        self._finalizer: weakref.finalize[..., OptimizerHook] | None = None
        self.in_closure = False

    def arm(self) -> None:
        """Start listening to optimizer steps; an armed hook is disarmed first."""
        self.disarm()
        itself, listener = weakref.WeakMethod(self._before_step), self._listener

        def before(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
            method = itself()
            return None if method is None else method(optimizer, args, kwargs)

        def after(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            found = listener()
            if found is not None and not is_capturing():
                found.step_ended(optimizer)

        acts = untraced(before), untraced(after)
        self._removers = [partial(remove_step_hook, act) for act in acts]
        self._finalizer = weakref.finalize(self, _call_all, self._removers)
        self._removers.append(before_each_optimizer_step(acts[0]))
        self._removers.append(after_each_optimizer_step(acts[1]))

    def disarm(self) -> None:
        """Stop listening; does nothing if the hook is not armed."""
        _call_all(self._removers)  # again and again, until no interrupt keeps it from returning
        if self._finalizer is not None:
            self._finalizer.detach()
        self._removers = []

    def _before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any] | None:
        listener = self._listener()
        if listener is None or is_capturing():
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not listener.about_to_step(optimizer, callable(closure)):
            return None
        if not callable(closure):
            listener.gradients_complete(optimizer)
            return None
        observed = self._observed(closure, lambda: listener.gradients_complete(optimizer))
        if len(args) > 1:
            return (args[0], observed, *args[2:]), kwargs
        return args, {**kwargs, "closure": observed}

    def _observed(
        self, closure: Callable[[], Any], evaluated: Callable[[], None]
    ) -> Callable[[], Any]:
        """Wrap a closure so that ``evaluated`` is called after its first evaluation."""
        done = False

        def observed() -> Any:
            nonlocal done
            self.in_closure = True
            try:
                result = closure()
            finally:
                self.in_closure = False
            if not done:
                done = True
                evaluated()
            return result

        return observed


def after_each_step(
    optimizer: Optimizer, act: Callable[[Optimizer, Any, Any], None]
) -> RemovableHandle:
    """Call ``act(optimizer, args, kwargs)`` after every step of one optimizer.

    The optimizer keeps ``act`` alive.

    Returns:
        The hook's handle.
    """
    # Inside a compiled step function, torch.compile must call this on every step, not trace it.
    untraced = torch.compiler.disable(act)  # type: ignore[no-untyped-call]  # torch
    return optimizer.register_step_post_hook(untraced)


def _call_all(functions: Iterable[Callable[[], object]]) -> None:
    for function in functions:
        function()
