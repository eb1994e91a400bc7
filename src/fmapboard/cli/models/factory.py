"""Builds the user's own model, named as ``package.module:callable``."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.cli.models.checkpoints import one_line
from fmapboard.errors import ConfigurationError, UnknownModel, closest


def call_factory(spec: str) -> nn.Module:
    """What the callable that ``spec`` names returns; a module in its place is taken as it is.

    The current folder is importable, as with ``python -m``.

    Raises:
        UnknownModel: there is no such module or attribute.
        ConfigurationError: the module fails to import, or the callable fails or returns no module.
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
    return _call(made, spec)


def _import(name: str, spec: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # stays: a model may import more of its package when it runs
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything, or exit
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{name}.".startswith(f"{absent}."):
            raise UnknownModel(
                f"no module {absent!r} (for {spec!r}) in {here!r} or on Python's path"
            ) from error
        raise ConfigurationError(
            f"importing {name!r} (for {spec!r}) failed: {one_line(error)}"
        ) from error


def _call(made: Any, spec: str) -> nn.Module:
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise UnknownModel(
                f"{spec!r} is a {type(made).__name__}, neither callable nor a module"
            )
        try:
            made = made()
        except (Exception, SystemExit) as error:  # the user's code
            raise ConfigurationError(f"calling {spec!r} failed: {one_line(error)}") from error
    if not isinstance(made, nn.Module):
        raise ConfigurationError(
            f"{spec!r} returned a {type(made).__name__}, not a torch.nn.Module"
        )
    return made
