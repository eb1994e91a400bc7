"""Hooks on a user's module: ``LayerHook``, which records, and what copies of it get."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from functools import partial
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


class LayerHook(InertInCopies, partial[None]):
    """A hook on a layer: ``LayerHook(record, call, name, side)`` calls ``record`` with all these.

    They are followed by the module, its arguments, keyword arguments and output. Once the hook was
    removed, a call that had begun before leaves out the keyword arguments.
    """

    __slots__ = ()


def _inert() -> Hook:
    return contextlib.nullcontext().__exit__


# Whether a layer is recorded before the user's forward hooks or after all hooks on it.
#
# A recording hook normally runs first and receives what ``forward`` returned. In a model under
# ``intervene`` it runs last and receives what the next layer receives.

_recorded_last: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""Module -> in how many open `recorded_last` blocks it is."""


def is_recorded_last(module: nn.Module) -> bool:
    """True for a module of a model in a `recorded_last` block."""
    return bool(_recorded_last) and module in _recorded_last


def install_last(hook: LayerHook, module: nn.Module) -> None:
    """Register a hook on a module's output behind all others but those that change gradients.

    The tensor that is recorded then has the gradient that reaches the layer.
    """
    module.register_forward_hook(hook, with_kwargs=True)
    hooks = module._forward_hooks
    for key, other in list(hooks.items()):
        if isinstance(other, InertInCopies) and other.follows_recording:
            hooks[key] = hooks.pop(key)


@contextlib.contextmanager
def recorded_last(model: nn.Module) -> Iterator[None]:
    """Record the modules of a model after all hooks on them, in passes that begin in the block.

    Blocks may be nested.

    Args:
        model: any module, unwrapped.
    """
    modules = [m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)]
    for module in modules:
        _recorded_last[module] = _recorded_last.get(module, 0) + 1
    try:
        yield
    finally:
        for module in modules:
            _recorded_last[module] -= 1
            if not _recorded_last[module]:
                del _recorded_last[module]
