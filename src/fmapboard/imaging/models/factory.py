"""Build the user's own model, given as ``package.module:callable`` with its arguments."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.errors import ConfigurationError, UnknownModel, closest
from fmapboard.imaging.messages import one_line


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
    if not callable(made):
        raise UnknownModel(
            f"{call.name!r} is a {type(made).__name__}, neither callable nor a torch.nn.Module"
        )
    try:
        model = made(*call.args, **call.kwargs)
    except (Exception, SystemExit) as error:  # the user's code
        raise ConfigurationError(
            f"calling {call.name!r} failed: {one_line(error)}{_needs(made, call)}"
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


def _needs(made: Callable[..., Any], call: Call) -> str:
    """Text that lists a callable's arguments, if the given ones do not match its signature."""
    signature = signature_of(made)
    if signature is None:
        return ""
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError:
        names = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        return (
            f'; give arguments as --model "{call.name}(NAME=VALUE)" or with --model-arg NAME=VALUE '
            f"(it takes {', '.join(names)})"
        )
    return ""


def signature_of(made: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a callable; None for those without one: in C++, scripted, types in C."""
    try:
        return inspect.signature(made)
    except (TypeError, ValueError):
        return None


_EXAMPLE = "expected literals, such as Net(3, width=64, norm='batch')"


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
            source = f"call({given.strip()}"
            call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise ConfigurationError(f"{_short(spec)}: {reason}; {_EXAMPLE}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ConfigurationError(f"{_short(spec)}: something follows the call; {_EXAMPLE}")
    args = tuple(_literal(argument, source, spec) for argument in call.args)
    kwargs = {str(k.arg): _literal(k.value, source, spec, f"{k.arg}=") for k in call.keywords}
    if len(kwargs) < len(call.keywords):
        raise ConfigurationError(f"{_short(spec)}: an argument is given twice; {_EXAMPLE}")
    return Call(name.strip(), args, kwargs)


def _literal(node: ast.expr, source: str, spec: str, name: str = "") -> Any:
    if isinstance(node, ast.Starred) or name == "None=":
        raise ConfigurationError(f"{_short(spec)}: * and ** are not supported; {_EXAMPLE}")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        text = ast.get_source_segment(source, node) or ""  # `ast.unparse` may recurse too deep
        quoted = f"; text needs quotes: {name}{text!r}" if isinstance(node, ast.Name) else ""
        raise ConfigurationError(
            f"{_short(spec)}: {_short(name + text)} is not a literal and was not evaluated"
            f"{quoted}; {_EXAMPLE}"
        ) from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


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


def bind_forward(model: nn.Module, arguments: Mapping[str, Any]) -> None:
    """Make a model always pass these keyword arguments to its ``forward``.

    The model is changed in place instead of wrapped, so its layers keep their names.

    Raises:
        ConfigurationError: ``forward`` has no such argument.
    """
    if arguments:
        check_forward_takes(model, arguments, "--forward-arg {}".format)
        model.forward = functools.partial(model.forward, **arguments)


def check_forward_takes(
    model: nn.Module, names: Iterable[str], place: Callable[[str], str]
) -> None:
    """Check that ``forward`` takes keyword arguments of these names, if it has a signature.

    Args:
        model: Any module, unwrapped.
        names: The names.
        place: Where the user gave the argument of a name, for the error.

    Raises:
        ConfigurationError: It has no such argument.
    """
    signature = signature_of(model.forward)
    if signature is None:
        return
    known = signature.parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for name in () if takes_any else names:
        if name not in known:
            raise ConfigurationError(
                f"{place(name)}: {type(model).__name__}.forward() has no such argument"
                f"{closest(name, known)}"
            )
