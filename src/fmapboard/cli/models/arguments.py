"""``NAME=VALUE`` from the command line: arguments of a model's constructor or forward pass."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fmapboard.errors import ConfigurationError, closest

Arguments = Mapping[str, Any]
"""Name of a keyword argument -> its value."""


def parse_arguments(given: Sequence[str], option: str) -> Arguments:
    """Keyword arguments; a value is a Python literal, and text where it is none.

    Example:
        >>> parse_arguments(["width=64", "norm=batch", "sizes=[1, 2]"], "--model-arg")
        {'width': 64, 'norm': 'batch', 'sizes': [1, 2]}

    Raises:
        ConfigurationError: one is not written as NAME=VALUE, or named twice.
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
    """Let a model's forward pass always get these keyword arguments as well.

    The model itself stays in place, so its layers keep their names.

    Raises:
        ConfigurationError: forward has no such argument.
    """
    if not arguments:
        return
    known = inspect.signature(model.forward).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for name in arguments:
        if name not in known and not takes_any:
            raise ConfigurationError(
                f"--forward-arg {name}: {type(model).__name__}.forward() has no such argument; "
                f"closest: {closest(name, known)}"
            )
    model.forward = functools.partial(model.forward, **arguments)


def check_forward(model: nn.Module) -> None:
    """Find out, before anything runs, whether forward can be called with images alone.

    Raises:
        ConfigurationError: it needs more arguments, or takes none; the text says what to do.
    """
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # a scripted model, or one in C++
        return
    try:
        signature.bind(torch.empty(0))
    except TypeError as error:
        needed = [
            p.name
            for p in list(signature.parameters.values())[1:]
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        name = f"{type(model).__name__}.forward()"
        if not needed:
            raise ConfigurationError(f"{name} cannot be called with images: {error}") from error
        given = " ".join(f"--forward-arg {one}=VALUE" for one in needed)
        raise ConfigurationError(
            f"{name} needs {', '.join(needed)} besides images: give {given}, or name a callable "
            "(package.module:callable) whose module takes images alone"
        ) from error
