"""Hooks on a user's module: ``LayerHook``, which records, and what copies of it get."""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

Hook = Callable[..., None]


class InertInCopies:
    """A hook on a user's module that copies and pickles of the module get without its effect.

    They get a hook that does nothing and needs only the standard library, so a model saved
    while the hook is installed can be loaded where fmapboard is not installed.

    Attributes:
        follows_recording: True if recording hooks belong before this one.
    """

    __slots__ = ()
    follows_recording = False

    def __copy__(self) -> Hook:
        return _inert()

    def __deepcopy__(self, memo: object) -> Hook:
        return _inert()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


class LayerHook(InertInCopies):
    """A hook that records what a layer receives or returns.

    Args:
        record: called with the module, its arguments, keyword arguments and output; raises nothing
            that must not reach the user's ``forward``.
        runs_first: True if the hook belongs before the user's forward hooks.
        call: the call of the root, or of a part of it, that the hook is installed for.
    """

    __slots__ = ("_record", "call", "runs_first")

    def __init__(
        self, record: Callable[..., None], *, runs_first: bool = False, call: object
    ) -> None:
        self._record, self.runs_first, self.call = record, runs_first, call

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Any = None, output: Any = None
    ) -> None:
        """Record this call of the module.

        Once the hook was removed, a call that had begun before calls it without ``kwargs``.
        """
        self._record(module, args, kwargs, output)


def _inert() -> Hook:
    return contextlib.nullcontext().__exit__


# Whether a layer is recorded before the user's forward hooks or after all hooks on it.
#
# A recording hook normally runs first and receives what ``forward`` returned. In a model under
# ``intervene`` it runs last and receives what the next layer receives, whichever of the two was
# installed first.

_recorded_last: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""Module -> in how many open `recorded_last` blocks it is."""


def is_recorded_last(module: nn.Module) -> bool:
    """True for a module of a model in a `recorded_last` block."""
    return bool(_recorded_last) and module in _recorded_last


def install(hooks: Iterable[tuple[LayerHook, nn.Module]]) -> None:
    """Register hooks on the outputs of modules where they belong."""
    for hook, module in hooks:
        first = hook.runs_first and not (_recorded_last and module in _recorded_last)
        module.register_forward_hook(hook, prepend=first, with_kwargs=True)
        if not first:
            _settle(module)


@contextlib.contextmanager
def recorded_last(model: nn.Module) -> Iterator[None]:
    """Record the modules of a model after all hooks on them, inside the block.

    Recording hooks that are already installed are moved behind the others. Blocks may be nested.

    Args:
        model: any module, unwrapped.
    """
    modules = [m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)]
    for module in modules:
        _recorded_last[module] = _recorded_last.get(module, 0) + 1
        _settle(module)
    try:
        yield
    finally:
        for module in modules:
            _recorded_last[module] -= 1
            if not _recorded_last[module]:
                del _recorded_last[module]
                _move_first(module)


def _settle(module: nn.Module) -> None:
    """Move recording hooks behind the others, but for those that change gradients.

    The tensor that is recorded then has the gradient that reaches the layer.
    """
    hooks, before = _ordered(module._forward_hooks), _ordered(module._forward_pre_hooks)
    for key, hook in list(hooks.items()):
        if isinstance(hook, LayerHook):
            hooks.move_to_end(key)
    for key, hook in list(hooks.items()):
        if isinstance(hook, InertInCopies) and hook.follows_recording:
            hooks.move_to_end(key)
    for key, hook in list(before.items()):
        if isinstance(hook, LayerHook) and not hook.runs_first:
            before.move_to_end(key)


def _move_first(module: nn.Module) -> None:
    hooks = _ordered(module._forward_hooks)
    for key, hook in reversed(list(hooks.items())):
        if isinstance(hook, LayerHook) and hook.runs_first:
            hooks.move_to_end(key, last=False)


def _ordered(hooks: Any) -> OrderedDict[int, object]:
    """What torch holds hooks in, and annotates as a dict."""
    assert isinstance(hooks, OrderedDict)
    return hooks
