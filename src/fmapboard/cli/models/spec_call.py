"""Arguments written behind a model's name: ``package.module:Class(n_channels=3, n_classes=2)``."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import Any

from fmapboard.errors import ConfigurationError

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
