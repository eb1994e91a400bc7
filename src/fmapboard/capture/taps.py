"""``tap``: log a tensor in the middle of a ``forward`` as if it were the output of a layer."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from fmapboard.capture.layer_hook import LayerHook, hooked_roots
from fmapboard.model.layers import Layers, clean_name

if TYPE_CHECKING:
    from fmapboard.capture.hooks import HookRegistry

T = TypeVar("T")


class Tap(nn.Identity):
    """Stands for the module of a tapped tensor."""


_TAP = Tap()
_armed: tuple[weakref.ref[HookRegistry], ...] = ()
"""The registries that have hooks installed; replaced as a whole, since every thread reads it."""
_lock = threading.RLock()  # reentrant: the garbage collector may disarm a registry while it is held
MODULE_CALL = nn.Module.__call__.__code__
"""The code of every module's ``__call__``; its locals are ``self``, ``args`` and ``kwargs``."""


def tap(name: str, value: T) -> T:
    """Log a tensor of a ``forward``, and its gradient, as a layer called ``name``; returns it.

    ``value`` itself is returned, never a copy. While no step is logged and nothing is extracted,
    that is all that happens, also in a compiled model, where no trace of the call is left. While
    ``watch`` logs a step, the tensor is drawn and measured like the output of a layer and, if it
    requires a gradient and is not a leaf, so is its gradient. ``extract``, ``extract_gradients``
    and ``visualize`` record it too. ``layers=`` does not have to name it; ``"!name"`` there leaves
    it out.

    Args:
        name: Name of the layer, such as ``"encoder.sum"``. If it is that of a module, ``.tap`` is
            appended. The second tensor of a pass under one name is ``name.call2``.
        value: A tensor, or a tuple, list or dict of tensors, of which ``watch`` logs the first.

    Returns:
        ``value``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> import fmapboard
        >>> class Residual(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.conv = nn.Conv2d(3, 3, 3, padding=1)
        ...
        ...     def forward(self, x):
        ...         return fmapboard.tap("sum", self.conv(x) + x).relu()
        >>> fmapboard.extract(Residual(), torch.zeros(1, 3, 8, 8))
        LayerMaps of 2 layers
          conv: float32 [1, 3, 8, 8]
          sum: float32 [1, 3, 8, 8]
    """
    if _armed and not torch.compiler.is_compiling():
        _deliver(name, value)
    return value


@contextlib.contextmanager
def receiving_taps(registry: weakref.ref[HookRegistry]) -> Iterator[None]:
    """Deliver tapped tensors to a registry for the duration of a ``with`` block."""
    global _armed
    with _lock:
        _armed = (*_armed, registry)
    try:
        yield
    finally:
        with _lock:
            _armed = tuple(one for one in _armed if one is not registry)


def _deliver(name: str, value: Any) -> None:
    """Deliver a tensor to the registries whose model is running in this thread."""
    modules = list(_running_modules())
    for registry in [reference() for reference in _armed]:
        if registry is None:
            continue
        try:
            module, label = _running_part(registry, modules), _label(registry, name)
        except Exception as error:
            registry.failed(Tap.__name__, error)
            continue
        if module is not None:
            # As a hook of the module, which checks the thread and the device.
            LayerHook(registry, "_tapped", label)(module, (), {}, value)


def _running_part(registry: HookRegistry, modules: list[nn.Module]) -> nn.Module | None:
    """The model of a registry, or a copy of it on another device, if it is among ``modules``.

    As long as the user calls parts of the model instead of the model, the innermost of its parts.
    """
    root = next((module for module in modules if registry in hooked_roots(module)), None)
    if root is not None or registry.root_ran:
        return root
    own = set(registry.model.modules())
    return next((module for module in modules if module in own), None)


def _label(registry: HookRegistry, name: str) -> str:
    label = clean_name(str(name)) or Tap.__name__
    return f"{label}.tap" if label in registry.layers else label


def _running_modules() -> Iterator[nn.Module]:
    """The modules whose ``__call__`` is running in this thread, from the innermost on."""
    frame = sys._getframe()
    while frame is not None:
        # The locals of `__call__` are the module and its arguments, which live until it returns:
        # reading them keeps nothing alive longer.
        if frame.f_code is MODULE_CALL and isinstance(
            module := frame.f_locals.get("self"), nn.Module
        ):
            yield module
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop


def tap_module() -> nn.Module:
    """The module that listeners receive with a tapped tensor."""
    return _TAP


def is_left_out(name: str, layers: Layers) -> bool:
    """True if a ``"!pattern"`` in ``layers=`` matches the name of a tapped tensor."""
    choices = [layers] if isinstance(layers, str) else layers
    if not isinstance(choices, (list, tuple)):
        return False
    globs = [choice[1:] for choice in choices if isinstance(choice, str) and choice[:1] == "!"]
    return any(fnmatchcase(name, glob) for glob in globs)
