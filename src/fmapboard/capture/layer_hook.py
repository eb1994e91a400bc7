"""``LayerHook``: a forward hook on a user's module."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import nn

from fmapboard.capture.compiled import is_unobservable

if TYPE_CHECKING:
    from fmapboard.capture.hooks import HookRegistry

Hook = Callable[..., None]


class LayerHook:
    """A hook on a user's module. Copies and pickles of the module get an inert hook instead.

    The inert hook needs only the standard library, so a model saved during a logged step can be
    loaded where fmapboard is not installed. An error in the hook goes to ``HookRegistry.failed``.
    """

    __slots__ = ("_event", "_name", "_registry")

    def __init__(self, registry: HookRegistry, event: str, name: str) -> None:
        self._registry, self._event, self._name = weakref.ref(registry), event, name

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> None:
        """Call the registry's method, unless this call of the module does not count."""
        registry = self._registry()
        if registry is None:
            return
        try:
            if registry.is_foreign_thread(module) or is_unobservable():
                return
            if not registry.is_on_other_device(module, (args, kwargs, output)):
                getattr(registry, self._event)(self._name, module, args, kwargs, output)
        except Exception as error:
            registry.failed(self._name, error)

    def __copy__(self) -> Hook:
        return _inert()

    def __deepcopy__(self, memo: object) -> Hook:
        return _inert()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def _inert() -> Hook:
    return contextlib.nullcontext().__exit__


def is_replica(module: nn.Module) -> bool:
    """True for a copy of a module that DataParallel runs on one of its devices."""
    return getattr(module, "_is_replica", False)  # set by DataParallel on its copies
