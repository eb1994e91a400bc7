"""Hooks on users' layers: ``LayerHook``, which records, and what copies of the layers get."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from fmapboard.model.layers import clean_name

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

    def __reduce__(self) -> tuple[Any, ...]:
        """What `copy` and `pickle` make of the hook."""
        return getattr, (contextlib.nullcontext(), "__exit__")


class LayerHook(InertInCopies, partial[None]):
    """A hook on a layer: ``LayerHook(record, call, name, side)`` calls ``record`` with all these.

    They are followed by the module, its arguments, keyword arguments and output. Once the hook was
    removed, a call that had begun before leaves out the keyword arguments.
    """

    __slots__ = ()


def install_hooks(
    record: Hook, call: object, layers: Mapping[str, nn.Module], side: str, *, is_last: bool
) -> None:
    """Put a `LayerHook` on each layer.

    Args:
        record: called by the hooks.
        call: identifies the hooks in ``remove_hooks``.
        layers: by name.
        side: ``"input"`` or ``"output"``.
        is_last: record outputs behind all other hooks but those that change gradients: the tensor
            then has the gradient that reaches the layer. Else before all others, unless the layer
            is in a `recorded_last` block.
    """
    some_are_last = bool(_recorded_last)
    for name, module in layers.items():
        hook = LayerHook(record, call, name, side)
        if side == "input":
            module.register_forward_pre_hook(hook, with_kwargs=True)
            continue
        last = is_last or (some_are_last and is_recorded_last(module))
        module.register_forward_hook(hook, prepend=not last, with_kwargs=True)
        if not last:
            continue
        hooks = module._forward_hooks
        for key, other in list(hooks.items()):
            if isinstance(other, InertInCopies) and other.follows_recording:
                hooks[key] = hooks.pop(key)


def remove_hooks(call: object, layers: Iterable[nn.Module]) -> None:
    """Remove the hooks of a call, without handles: an interrupt may have kept these from us."""
    for module in layers:
        attributes = vars(module)
        for name in _HOOK_DICTS:
            hooks = attributes[name]
            with_kwargs = attributes[f"{name}_with_kwargs"]
            for key, hook in list(hooks.items()):
                if isinstance(hook, LayerHook) and hook.args[0] is call:
                    hooks.pop(key, None)
                    with_kwargs.pop(key, None)


def own_layers(replica: nn.Module, layers: Iterable[str]) -> dict[str, nn.Module]:
    """The layers of a replica, with hook dicts of their own instead of the original's."""
    own = {}
    chosen = set(layers)
    for full_name, module in replica.named_modules():
        name = clean_name(full_name)
        if name not in chosen:
            continue
        own[name] = module
        attributes = vars(module)
        for hooks in _HOOK_DICTS:
            for key in (hooks, f"{hooks}_with_kwargs"):
                attributes[key] = attributes[key].copy()
    return own


_HOOK_DICTS = ("_forward_hooks", "_forward_pre_hooks")
"""Where a module keeps the hooks that are installed here; beside it ``…_with_kwargs``."""


_recorded_last: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""Module -> in how many open `recorded_last` blocks it is."""


def is_recorded_last(module: nn.Module) -> bool:
    """True for a module of a model in a `recorded_last` block."""
    return bool(_recorded_last) and module in _recorded_last


def record_alike(module: nn.Module, twin: nn.Module) -> None:
    """Record the copy of a module after all hooks on it if the module is recorded so."""
    if is_recorded_last(module):
        _recorded_last[twin] = 1


@contextlib.contextmanager
def recorded_last(model: nn.Module) -> Iterator[None]:
    """Record the modules of a model after all hooks on them, in passes that begin in the block.

    A recording hook normally runs first and receives what ``forward`` returned. In a model under
    ``intervene`` it runs last and receives what the next layer receives. Blocks may be nested.

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
