"""``tap``: log a tensor in the middle of a ``forward`` as if it were the output of a layer."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import torch
from torch import nn

from fmapboard.capture.module_calls import MODULE_CALL, original_of
from fmapboard.model.kernel_shapes import functions, names_in
from fmapboard.model.layers import Layers, clean_name, matches

T = TypeVar("T")
TapChange: TypeAlias = "Callable[[str, Any, list[nn.Module]], Any]"
"""Called with the name, the value and the running modules; returns what ``tap`` returns."""


class Tap(nn.Identity):
    """Stands for the module of a tapped tensor."""


TAP = Tap()
"""The module that listeners receive with a tapped tensor."""

_armed: tuple[weakref.ref[Any], ...] = ()
"""Who receives tapped tensors; replaced as a whole, since every thread reads it."""
_changes: tuple[TapChange, ...] = ()
"""The open interventions that change tapped tensors, the outermost first; as ``_armed``."""
# Reentrant: the garbage collector may call stop_receiving while it is held.
_lock = threading.RLock()


def tap(name: str, value: T) -> T:
    """Log a tensor of a ``forward``, and its gradient, as a layer called ``name``; returns it.

    ``value`` itself is returned, never a copy. While no step is logged and nothing is extracted,
    that is all that happens, also in a compiled model, where no trace of the call is left. While
    ``watch`` logs a step, the tensor is drawn and measured like the output of a layer and, if it
    requires a gradient and is not a leaf, so is its gradient. ``extract``, ``extract_gradients``
    and ``visualize`` record it too. ``layers=`` does not have to name it: a pattern there that
    matches no module selects among tapped tensors, and ``"!name"`` leaves one out. Under
    ``intervene``, a change of ``outputs`` is in the value that is returned, one of ``gradients``
    in the gradient of ``value``.

    Args:
        name: Name of the layer, such as ``"encoder.sum"``. If it is that of a module, ``.tap`` is
            appended. The second tensor of a pass under one name is ``name.call2``.
        value: A tensor, or a tuple, list or dict of tensors, of which ``watch`` logs the first.

    Returns:
        ``value``, unless ``intervene`` changes it.

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
    # torch.compile decides the first condition, and so does not depend on the second one.
    if not torch.compiler.is_compiling() and (_armed or _changes):
        changed: T = _deliver(name, value)
        return changed
    return value


def receive_taps(receiver: weakref.ref[Any]) -> None:
    """Call ``tapped`` of an object with tapped tensors until ``stop_receiving``."""
    global _armed
    with _lock:
        _armed = (*_armed, receiver)


def stop_receiving(receiver: weakref.ref[Any]) -> None:
    """Deliver no more tapped tensors to a receiver; a second call does nothing."""
    global _armed
    with _lock:
        _armed = tuple([other for other in _armed if other is not receiver])


@contextlib.contextmanager
def changing_taps(change: TapChange) -> Iterator[None]:
    """Call a function on each tapped tensor for the duration of a ``with`` block."""
    global _changes
    with _lock:
        _changes = (*_changes, change)
    try:
        yield
    finally:
        with _lock:
            _changes = tuple([other for other in _changes if other is not change])


def _deliver(name: str, value: Any) -> Any:
    """Change a tensor, then deliver it to the receivers."""
    running = list(running_modules())
    for change in _changes:
        value = change(name, value, running)
    for receiver in [reference() for reference in _armed]:
        if receiver is not None:
            receiver.tapped(name, value, running)
    return value


def tap_label(name: str, layers: Container[str]) -> str:
    """The name under which a tapped tensor is recorded beside these layers."""
    label = clean_name(str(name)) or Tap.__name__
    return f"{label}.tap" if label in layers else label


def running_modules() -> Iterator[nn.Module]:
    """The modules whose ``__call__`` is running in this thread, from the innermost on.

    A module of a ``Twin`` is followed by the one that it is a copy of.
    """
    frame = sys._getframe()
    while frame is not None:
        # The locals of `__call__` are the module and its arguments, which live until it returns:
        # reading them keeps nothing alive longer.
        module = frame.f_locals.get("self") if frame.f_code is MODULE_CALL else None
        if isinstance(module, nn.Module):
            yield module
            original = original_of(module)
            if original is not module:
                yield original
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop


@dataclass(frozen=True, slots=True)
class TapChoice:
    """Which tapped tensors ``layers=`` selects.

    Attributes:
        only: patterns that match no module of the model. If there are any, only the tapped tensors
            that match one of them are selected.
        without: globs of the tapped tensors that are not selected.
        seen: names that were tapped in recorded passes, selected or not.
    """

    only: tuple[str | re.Pattern[str], ...] = ()
    without: tuple[str, ...] = ()
    seen: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, layers: Layers, named: Iterable[str]) -> TapChoice:
        """The choice that ``layers=`` makes in a model with these names of modules."""
        choices: Any = layers if isinstance(layers, (list, tuple)) else [layers]
        only: list[str | re.Pattern[str]] = []
        without = []
        names = list(named)
        for choice in choices:
            if isinstance(choice, str) and choice.startswith("!"):
                without.append(choice[1:])
                continue
            is_pattern = isinstance(choice, (str, re.Pattern))
            if is_pattern and not any(matches(choice, name) for name in names):
                only.append(choice)
        return cls(tuple(only), tuple(without))

    def __call__(self, name: str) -> bool:
        """True if a tapped tensor of this name is selected."""
        self.seen.add(name)
        if any(matches(glob, name) for glob in self.without):
            return False
        return not self.only or any(matches(pattern, name) for pattern in self.only)

    def missing(self) -> str | None:
        """What to say of the patterns that no tapped tensor matched; None if each matched one."""
        unmatched = []
        for pattern in self.only:
            if not any(matches(pattern, name) for name in self.seen):
                text = pattern if isinstance(pattern, str) else pattern.pattern
                unmatched.append(repr(text))
        if not unmatched:
            return None
        listed = ", ".join(unmatched)
        tapped = ", ".join(sorted(self.seen)) or "nothing"
        return f"no layer matches {listed}, and no tensor named by tap(): tapped was {tapped}"


def has_taps(model: nn.Module) -> bool:
    """True if the code of a model's modules, or a function that it calls by name, uses ``tap``."""
    waiting: list[types.FunctionType] = []
    for module in model.modules():
        waiting += functions(module).values()
    seen = set()
    while waiting:
        function = waiting.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        names = names_in(function.__code__)
        if "tap" in names:
            return True
        for value in filter(None, map(function.__globals__.get, names)):
            if value is tap:
                return True
            if isinstance(value, types.FunctionType) and not _is_of_torch(value):
                waiting.append(value)
    return False


def _is_of_torch(function: types.FunctionType) -> bool:
    package, _, _ = str(function.__module__).partition(".")
    return package in ("torch", "torchvision")
