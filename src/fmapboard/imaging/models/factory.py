"""Build the user's own model, given as ``package.module:callable`` with its arguments."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from fmapboard.errors import ConfigurationError, UnknownModel, closest, one_line


def call_factory(call: Call) -> nn.Module:
    """Import the callable that a call names, call it with the arguments, and return its model.

    The name may also be that of a `torch.nn.Module` instance. The current folder is importable, as
    with ``python -m``.

    Raises:
        UnknownModel: as for ``imported``.
        ConfigurationError: the module fails to import, or the callable fails or does not return a
            `torch.nn.Module`.
    """
    made = imported(call.name)
    if isinstance(made, nn.Module):
        if call.args or call.kwargs:
            raise ConfigurationError(
                f"{call.name!r} is already built and takes no arguments; name its class or a "
                "function"
            )
        return made
    try:
        model = made(*call.args, **call.kwargs)
    except (Exception, SystemExit) as error:  # the user's code
        advice = f'; arguments are written --model "{call.name}(NAME=VALUE)"'
        raise ConfigurationError(
            f"calling {call.name!r} failed: {one_line(error)}"
            f"{advice * isinstance(error, TypeError)}"
        ) from error
    if not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"{call.name!r} returned a {type(model).__name__}, not a torch.nn.Module"
        )
    return model


def imported(spec: str, kind: str = "callable") -> Any:
    """What ``package.module:name`` names; the current folder is importable.

    Args:
        spec: The text.
        kind: What stands behind the colon, for the error.

    Raises:
        UnknownModel: there is no such module or attribute.
        ConfigurationError: the module fails to import.
    """
    module_name, _, attribute = spec.partition(":")
    names = [*module_name.split("."), *attribute.split(".")]
    if not all(name.isidentifier() for name in names):
        raise UnknownModel(
            f"{spec!r} is not written as package.module:{kind}, such as nets:Net for the file "
            "nets.py in the current folder"
        )
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # not removed: the model may import more when it runs
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything, or exit
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{module_name}.".startswith(f"{absent}."):
            raise UnknownModel(
                f"no module {absent!r} (for {spec!r}) in {here!r} or on Python's path"
            ) from error
        raise ConfigurationError(
            f"importing {module_name!r} (for {spec!r}) failed: {one_line(error)}"
        ) from error
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        near = closest(attribute, [name for name in dir(module) if not name.startswith("_")])
        raise UnknownModel(f"{module_name!r} has no {attribute!r} (for {spec!r}){near}") from error


@dataclass(frozen=True, slots=True)
class Call:
    """A model's name and the arguments behind it.

    Attributes:
        name: What stands before the parentheses.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def parse_call(spec: str) -> Call:
    """Split a spec into the name and the literals behind it; nothing is evaluated.

    Numbers, text, True, False, None, and tuples, lists, sets and dictionaries of them are literals.

    >>> parse_call("my_package.unet:UNet(3, n_classes=2)")
    Call(name='my_package.unet:UNet', args=(3,), kwargs={'n_classes': 2})

    Raises:
        ConfigurationError: there is anything but literals in the parentheses.
    """
    name, opening, given = spec.partition("(")
    if not opening:
        return Call(spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in text, as of Windows paths
            call = ast.parse(f"call({given.strip()}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("something follows the call")
        args = tuple(map(ast.literal_eval, call.args))
        kwargs = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        if len(kwargs) < len(call.keywords) or "None" in kwargs:  # None for **
            raise ValueError("every keyword is given once, and ** is not supported")
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        shown = spec if len(spec) <= 80 else f"{spec[:80]}…"
        raise ConfigurationError(
            f"{shown!r}: {one_line(error, most=80)}; expected literals, with quotes around text, "
            "such as Net(3, width=64, norm='batch')"
        ) from error
    return Call(name.strip(), args, kwargs)


def parse_arguments(given: Sequence[str], option: str) -> dict[str, Any]:
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
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            arguments[name] = value
    return arguments
