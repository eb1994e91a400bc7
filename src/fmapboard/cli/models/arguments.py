"""``NAME=VALUE`` arguments from the command line, for a model's constructor or forward pass."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from fmapboard.errors import ConfigurationError, closest

Arguments = Mapping[str, Any]
"""Keyword arguments by name."""


def parse_arguments(given: Sequence[str], option: str) -> Arguments:
    """Parse keyword arguments; a value that is not a Python literal is taken as a string.

    Example:
        >>> parse_arguments(["width=64", "norm=batch", "sizes=[1, 2]"], "--model-arg")
        {'width': 64, 'norm': 'batch', 'sizes': [1, 2]}

    Raises:
        ConfigurationError: an argument is not written as NAME=VALUE, or is given twice.
    """
    arguments: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError(f"{option} {text!r}: expected NAME=VALUE, such as width=64")
        if name in arguments:
            raise ConfigurationError(f"{option} {text!r}: {name!r} is given twice")
        arguments[name] = _literal(value)
    return arguments


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def bind_forward(model: nn.Module, arguments: Arguments) -> None:
    """Make a model always pass these keyword arguments to its ``forward``.

    The model is changed in place instead of wrapped, so its layers keep their names.

    Raises:
        ConfigurationError: ``forward`` has no such argument.
    """
    if not arguments:
        return
    known = inspect.signature(model.forward).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for name in arguments:
        if name not in known and not takes_any:
            raise ConfigurationError(
                f"--forward-arg {name}: {type(model).__name__}.forward() has no such argument"
                f"{closest(name, known)}"
            )
    model.forward = functools.partial(model.forward, **arguments)
