"""Which names the code of a module's own class uses."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from torch import nn


def functions(module: nn.Module) -> dict[str, types.FunctionType]:
    """The functions that a module's class and its bases define, and those set on the module itself.

    Without those of torch's own classes. Decorated functions that name the original are unwrapped.
    """
    own = {name: _function(value) for name, value in vars(module).items() if callable(value)}
    kind: Any = type(module)  # a type is hashable, and mypy's stubs of lru_cache say otherwise
    return {**of_class(kind), **{name: found for name, found in own.items() if found is not None}}


@lru_cache(maxsize=1024)
def of_class(kind: type) -> Mapping[str, types.FunctionType]:
    """The functions by name that a class and its bases define, without those of torch."""
    found: dict[str, types.FunctionType] = {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "torch":
            continue
        for name, value in vars(base).items():
            function = _function(value)
            if function is not None:
                found.setdefault(name, function)
    return found


def names_in(code: types.CodeType) -> frozenset[str]:
    """The global names and attributes that a function's code uses, functions inside it included."""
    inner = (names_in(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(code.co_names).union(code.co_freevars, *inner)


def _function(value: Any) -> types.FunctionType | None:
    """The Python function behind a method, a decorated or a static one; None for other values."""
    for _ in range(8):
        if isinstance(value, types.FunctionType) and not hasattr(value, "__wrapped__"):
            return value
        value = getattr(value, "__wrapped__", getattr(value, "__func__", None))
    return None
