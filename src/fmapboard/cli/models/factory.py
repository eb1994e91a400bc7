"""Build the user's own model, given as ``package.module:callable``."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.cli.models.arguments import Arguments
from fmapboard.cli.models.messages import one_line
from fmapboard.errors import ConfigurationError, UnknownModel, closest


def call_factory(spec: str, arguments: Arguments) -> nn.Module:
    """Import the callable that ``spec`` names, call it with the arguments, and return its model.

    ``spec`` may also name a `torch.nn.Module` instance. The current folder is importable, as with
    ``python -m``.

    Raises:
        UnknownModel: there is no such module or attribute.
        ConfigurationError: the module fails to import, or the callable fails or does not return a
            `torch.nn.Module`.
    """
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise UnknownModel(f"{spec!r} is not written as package.module:callable")
    module = _import(module_name, spec)
    try:
        made = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        near = closest(attribute, [name for name in dir(module) if not name.startswith("_")])
        raise UnknownModel(
            f"{module_name!r} has no {attribute!r} (for {spec!r}); closest: {near}"
        ) from error
    return _call(made, spec, arguments)


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


def _call(made: Any, spec: str, arguments: Arguments) -> nn.Module:
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise UnknownModel(
                f"{spec!r} is a {type(made).__name__}, neither callable nor a torch.nn.Module"
            )
        try:
            made = made(**arguments)
        except (Exception, SystemExit) as error:  # the user's code
            raise ConfigurationError(
                f"calling {spec!r} failed: {one_line(error)}{_needs(made, arguments)}"
            ) from error
    elif arguments:
        raise ConfigurationError(
            f"{spec!r} is already built and takes no --model-arg; name its class or a function"
        )
    if not isinstance(made, nn.Module):
        raise ConfigurationError(
            f"{spec!r} returned a {type(made).__name__}, not a torch.nn.Module"
        )
    return made


def _needs(made: Any, arguments: Arguments) -> str:
    """Text that lists a callable's arguments, if the given ones do not match its signature."""
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):  # a type in C without a signature
        return ""
    try:
        signature.bind(**arguments)
    except TypeError:
        names = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        return f"; give arguments with --model-arg NAME=VALUE (it takes {', '.join(names)})"
    return ""
