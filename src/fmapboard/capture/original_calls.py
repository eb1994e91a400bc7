"""``NoCalls``: refuses calls of a model's modules while a copy of the model runs."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Any

from torch import nn

_SLOT = "_compiled_call_impl"
"""What torch calls instead of `forward` and every hook, if a module has it."""


class OriginalCalled(Exception):
    """The copy of a model calls a module of the original."""


class NoCalls:
    """Raises if this thread calls a module of a model while this is entered: ``with NoCalls(m):``.

    A deep copy of a model reaches the original through functions, which are not copied: lambdas
    that hold ``self``, weak references, closures. Other threads may call the model. Afterwards
    every module is as it was.

    Args:
        model: the original.

    Attributes:
        is_called: whether a call was refused; the model may have caught the error.
    """

    def __init__(self, model: nn.Module) -> None:
        self._modules = list(model.modules())
        self._found: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._thread = threading.get_ident()
        self.is_called = False

    def __enter__(self) -> NoCalls:
        for module in self._modules:
            own = vars(module)
            found = {_SLOT: own[_SLOT]} if _SLOT in own else {}
            self._found.append((own, found))
            own[_SLOT] = partial(self._call, module, found.get(_SLOT))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for own, found in self._found:
            if found:
                own.update(found)
            else:
                own.pop(_SLOT, None)
        self._found.clear()

    def _call(self, module: nn.Module, compiled: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == self._thread:
            self.is_called = True
            raise OriginalCalled(type(module).__name__)
        call = module._call_impl if compiled is None else compiled
        return call(*args, **kwargs)
