"""Which names the code of a module's own class uses."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch import nn


def functions(module: nn.Module) -> Iterator[types.FunctionType]:
    """The functions that a module's class and its bases define, and those set on the module itself.

    Without those of ``torch.nn``. Decorated functions that name the original one are unwrapped.
    """
    yield from filter(None, map(_function, vars(module).values()))
    yield from _of_class(type(module))  # type: ignore[arg-type]  # a type is hashable


def names_in(code: types.CodeType) -> frozenset[str]:
    """The global names and attributes that a function's code uses, functions inside it included."""
    inner = (names_in(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(code.co_names).union(code.co_freevars, *inner)


@lru_cache(maxsize=1024)
def _of_class(kind: type) -> tuple[types.FunctionType, ...]:
    own = [base for base in kind.__mro__ if base.__module__.partition(".")[0] != "torch"]
    found: dict[str, types.FunctionType] = {}
    for base in own:
        for name, value in vars(base).items():
            function = _function(value)
            if function is not None:
                found.setdefault(name, function)
    return tuple(found.values())


def _function(value: Any) -> types.FunctionType | None:
    """The Python function behind a method, a decorated or a static one; None for other values."""
    for _ in range(8):
        if isinstance(value, types.FunctionType) and not hasattr(value, "__wrapped__"):
            return value
        value = getattr(value, "__wrapped__", getattr(value, "__func__", None))
    return None
