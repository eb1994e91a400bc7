"""``OwnFunctions``: copies of functions, in which a twin's modules stand for those of the model.

A loss is often a function that refers to more than its arguments: a discriminator, class weights
that are trained, a generator of random numbers. Calling it as it is would train those too.
"""

from __future__ import annotations

import random
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
_OF_LIBRARIES = ("site-packages", "dist-packages")


class OwnFunctions:
    """Copies of functions and of what they hold; each object is copied once.

    A function of an installed library is called as it is, unless it is a closure. So is an object
    that cannot be copied, such as a writer.

    Args:
        twin: to which modules are added that only a function refers to.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._known: dict[int, tuple[Any, Any]] = {}

    def own(self, value: Any) -> Any:
        """The copy of a function, of a module, or of any other object."""
        if isinstance(value, _SHARED):
            return value
        own = getattr(value, "own", None)
        if own is not None and not isinstance(value, nn.Module):
            return own(self.own)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, types.FunctionType):
            return self._function(value)
        copied = self._copied(value)
        self._known[id(value)] = value, copied
        return copied

    def _copied(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            return self._twin.add(value)
        if isinstance(value, types.MethodType):
            owner = self.own(value.__self__)
            return types.MethodType(value.__func__, owner)
        if isinstance(value, partial):
            function = self.own(value.func)
            arguments = map(self.own, value.args)
            keywords = {name: self.own(held) for name, held in value.keywords.items()}
            return partial(function, *arguments, **keywords)
        if type(value) in (list, tuple, set):
            return type(value)(map(self.own, value))
        if type(value) is dict:
            return {key: self.own(held) for key, held in value.items()}
        is_simple = isinstance(value, (Tensor, *_GENERATORS))
        try:
            return self._twin.copied(value, type(value).__name__)
        except NoTwin:
            if is_simple:
                raise
            return value

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
        self._known[id(function)] = function, own
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
