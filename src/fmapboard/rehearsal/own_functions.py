"""``OwnFunctions``: copies of functions, in which a twin's modules stand for those of the model.

A loss is often a function that refers to more than its arguments: a discriminator, class weights
that are trained, features that a hook has kept, a generator of random numbers. Calling it as it is
would train and change those too.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.model.kernel_shapes import names_in

_GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_SHARED = (
    *(type, types.ModuleType, types.BuiltinFunctionType, str, int, float, type(None)),
    *(Dataset, DataLoader),
)
_PACKAGE = __name__.partition(".")[0]
_OF_LIBRARIES = ("site-packages", "dist-packages")
_OWN_WAYS = frozenset(
    {
        *("__del__", "__slots__", "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"),
        *("__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__"),
    }
)
"""A class that has one of these is copied by ``deepcopy``, if that is possible."""


class OwnFunctions:
    """Copies of functions and of what they hold; each object is copied once.

    A function of an installed library is called as it is, unless it is a closure. An object of the
    user's own class is copied attribute by attribute, any other one by ``deepcopy``. What cannot be
    copied, such as a writer, is shared.

    Args:
        twin: to which modules are added that only a function refers to. Its hooks are copied.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._known: dict[int, tuple[Any, Any]] = {}
        self._hooked = set[nn.Module]()
        self._own_hooks(twin.module)

    def own(self, value: Any) -> Any:
        """The copy of a function, of a module, or of any other object."""
        if isinstance(value, _SHARED):
            return value
        kind = type(value)
        if hasattr(kind, "own") and kind.__module__.startswith(f"{_PACKAGE}."):
            return value.own(self.own)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        found = self._twin.copy_of(value)
        if found is not None:
            return found
        if kind is list:
            return self._list(value)
        if kind is dict:
            return self._dict(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if is_of_user(kind) and not isinstance(value, nn.Module):
            return self._object(value)
        copied = self._copied(value)
        self._remember(value, copied)
        return copied

    def _remember(self, value: Any, copied: Any) -> None:
        self._known[id(value)] = value, copied
        self._twin.set_copy(value, copied)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            module = self._twin.add(value)
            self._own_hooks(module)
            return module
        if isinstance(value, types.MethodType):
            owner = self.own(value.__self__)
            return types.MethodType(value.__func__, owner)
        if isinstance(value, partial):
            function = self.own(value.func)
            arguments = map(self.own, value.args)
            keywords = {name: self.own(held) for name, held in value.keywords.items()}
            return partial(function, *arguments, **keywords)
        if type(value) in (tuple, set):
            return type(value)(map(self.own, value))
        if isinstance(value, Tensor) and not value.is_leaf:
            return value.detach().clone()  # that of an earlier step
        is_simple = isinstance(value, (Tensor, *_GENERATORS))
        try:
            return self._twin.copied(value, type(value).__name__)
        except NoTwin:
            if is_simple:
                raise
            return value

    def _list(self, value: list[Any]) -> list[Any]:
        own: list[Any] = []
        self._remember(value, own)
        own += map(self.own, value)
        return own

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        self._remember(value, own)
        for key, held in value.items():
            own[key] = self.own(held)
        return own

    def _object(self, value: Any) -> Any:
        """A copy of an object of a class of the user's own."""
        own = object.__new__(type(value))
        self._remember(value, own)
        for name, held in vars(value).items():
            vars(own)[name] = self.own(held)
        return own

    def _own_hooks(self, module: nn.Module) -> None:
        """Let the hooks of a twin's modules refer to copies."""
        added = [inner for inner in module.modules() if inner not in self._hooked]
        self._hooked.update(added)
        for inner in added:
            for name, hooks in vars(inner).items():
                if name not in _CALLED_HOOKS:
                    continue
                for number, hook in hooks.items():
                    owner = getattr(hook, "__self__", None)
                    if owner not in self._hooked:  # the twin has methods of its own modules
                        hooks[number] = self.own(hook)

    def _function(self, function: types.FunctionType) -> Callable[..., Any]:
        cells = function.__closure__ or ()
        is_of_library = any(part in function.__code__.co_filename for part in _OF_LIBRARIES)
        if is_of_library and not cells:
            return function
        own_cells = tuple([types.CellType() for _ in cells])
        own_globals = dict(function.__globals__)
        own = types.FunctionType(
            function.__code__, own_globals, function.__name__, closure=own_cells
        )
        self._remember(function, own)
        own.__kwdefaults__ = self.own(function.__kwdefaults__)
        own.__defaults__ = self.own(function.__defaults__)
        vars(own).update(vars(function))
        for cell, own_cell in zip(cells, own_cells, strict=True):
            try:
                held = cell.cell_contents
            except ValueError:  # an empty cell
                continue
            own_cell.cell_contents = self.own(held)
        for name in names_in(function.__code__):
            if name in own_globals:
                own_globals[name] = self.own(own_globals[name])
        return own


_CALLED_HOOKS = frozenset(
    {
        *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    }
)
"""Where torch keeps the hooks that are called in a step."""


_ABSTRACT = frozenset({"abc", "typing", "typing_extensions"})
"""Modules of classes without attributes of their own."""


def is_of_user(kind: type) -> bool:
    """True for a class of the user's own whose objects consist of nothing but attributes."""
    if kind.__module__ in _ABSTRACT:
        return False
    for base in kind.__mro__[:-1]:
        if base.__module__ in _ABSTRACT:
            continue
        package = base.__module__.partition(".")[0]
        path = getattr(sys.modules.get(base.__module__), "__file__", None) or ""
        is_of_library = any(part in path for part in _OF_LIBRARIES)
        if package in sys.stdlib_module_names:
            return False
        if is_of_library or not _OWN_WAYS.isdisjoint(vars(base)):
            return False
    return True
