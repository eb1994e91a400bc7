"""Hooks on a user's module: ``LayerHook``, which records, and what copies of it get."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import nn

from fmapboard.capture.compiled import is_unobservable
from fmapboard.errors import raise_interrupt

if TYPE_CHECKING:
    from fmapboard.capture.hooks import HookRegistry

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
    """A hook that records; an error in it goes to ``HookRegistry.failed``.

    Attributes:
        runs_first: True if the hook belongs before the user's forward hooks.
        call: the call of the root, or of a part of it, that the hook is installed for; None for
            any. In another call, which another thread makes at the same time, it does nothing.
    """

    __slots__ = ("_event", "_name", "_registry", "call", "runs_first")

    def __init__(
        self,
        registry: HookRegistry,
        event: str,
        name: str,
        *,
        runs_first: bool = False,
        call: object = None,
    ) -> None:
        self._registry, self._event, self._name = weakref.ref(registry), event, name
        self.runs_first, self.call = runs_first, call

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Any = None, output: Any = None
    ) -> None:
        """Call the registry's method, unless this call of the module does not count.

        Once the hook was removed, a call that had begun before calls it without ``kwargs``.
        """
        registry, handled = self._registry(), sys.exc_info()[1]
        if registry is None:
            return
        try:
            if registry.is_foreign_thread(module) or is_unobservable():
                return
            if self.call is not None and not registry.makes(self.call):
                return
            if not registry.is_on_other_device(module, (args, kwargs, output)):
                getattr(registry, self._event)(self._name, module, args, kwargs, output)
        except Exception as error:
            raise_interrupt(error, handled)
            registry.failed(self._name, error)


def _inert() -> Hook:
    return contextlib.nullcontext().__exit__
