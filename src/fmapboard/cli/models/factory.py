"""Build the user's own model, given as ``package.module:callable``."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.cli.models.arguments import Arguments
from fmapboard.cli.models.messages import one_line
from fmapboard.errors import ConfigurationError, UnknownModel, closest


def call_factory(spec: str, arguments: Arguments, args: Sequence[Any] = ()) -> nn.Module:
    """Import the callable that ``spec`` names, call it with the arguments, and return its model.

    ``spec`` may also name a `torch.nn.Module` instance. The current folder is importable, as with
    ``python -m``.

    Raises:
        UnknownModel: as for ``imported``.
        ConfigurationError: the module fails to import, or the callable fails or does not return a
            `torch.nn.Module`.
    """
    return _call(imported(spec), spec, arguments, args)


def imported(spec: str, kind: str = "callable") -> Any:
    """What ``package.module:name`` names; the current folder is importable.

    Args:
        spec: The text.
        kind: What stands behind the colon, for the error.

    Raises:
        UnknownModel: there is no such module or attribute, or it is a function of Python's standard
            library, among which are some that run other programs.
        ConfigurationError: the module fails to import.
    """
    module_name, _, attribute = spec.partition(":")
    names = [*module_name.split("."), *attribute.split(".")]
    if module_name.endswith(".py"):
        raise UnknownModel(
            f"{spec!r} names a file: write {Path(module_name).stem}:{attribute}, and run the "
            "command in the folder of that file"
        )
    if not all(name.isidentifier() for name in names):
        raise UnknownModel(f"{spec!r} is not written as package.module:{kind}")
    if any(name.startswith("__") for name in names):
        raise UnknownModel(f"{spec!r}: names that begin with __ are not looked up")
    module = _import(module_name, spec)
    try:
        found = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        near = closest(attribute, [name for name in dir(module) if not name.startswith("_")])
        raise UnknownModel(f"{module_name!r} has no {attribute!r} (for {spec!r}){near}") from error
    if not isinstance(found, nn.Module) and _is_of_python(found):
        raise UnknownModel(
            f"{spec!r} is a function or class of Python's standard library; it was not called"
        )
    return found


def _is_of_python(made: Any) -> bool:
    """True if a callable is defined in Python's standard library."""
    while isinstance(made, functools.partial):
        made = made.func
    name = getattr(made, "__module__", None)
    if not isinstance(name, str) or name.partition(".")[0] not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)  # None: it is compiled into Python
    return file is None or not Path(file).is_relative_to(os.getcwd())


def _import(name: str, spec: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # not removed: the model may import more when it runs
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything, or exit
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{name}.".startswith(f"{absent}."):
            raise UnknownModel(
                f"no module {absent!r} (for {spec!r}) in {here!r} or on Python's path"
            ) from error
        raise ConfigurationError(
            f"importing {name!r} (for {spec!r}) failed: {one_line(error)}"
        ) from error


def _call(made: Any, spec: str, arguments: Arguments, args: Sequence[Any]) -> nn.Module:
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise UnknownModel(
                f"{spec!r} is a {type(made).__name__}, neither callable nor a torch.nn.Module"
            )
        try:
            made = made(*args, **arguments)
        except (Exception, SystemExit) as error:  # the user's code
            raise ConfigurationError(
                f"calling {spec!r} failed: {one_line(error)}{_needs(made, spec, arguments, args)}"
            ) from error
    elif arguments or args:
        raise ConfigurationError(
            f"{spec!r} is already built and takes no arguments; name its class or a function"
        )
    if not isinstance(made, nn.Module):
        raise ConfigurationError(
            f"{spec!r} returned a {type(made).__name__}, not a torch.nn.Module"
        )
    return made


def _needs(made: Any, spec: str, arguments: Arguments, args: Sequence[Any]) -> str:
    """Text that lists a callable's arguments, if the given ones do not match its signature."""
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):  # a type in C without a signature
        return ""
    try:
        signature.bind(*args, **arguments)
    except TypeError:
        names = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        return (
            f'; give arguments as --model "{spec}(NAME=VALUE)" or with --model-arg NAME=VALUE '
            f"(it takes {', '.join(names)})"
        )
    return ""
