"""Types of the routes' answers for the front end, generated from the dataclasses that they return.

``PYTHONPATH=src python tests/helpers/answer_types.py`` writes the file.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from fmapboard.plugin.answers import Answer, MaybeNonfinite, Png
from fmapboard.plugin.routes.by_name import ROUTES

STATIC = Path(__file__).parents[2] / "src" / "fmapboard" / "plugin" / "static"
FILE = STATIC / "server" / "routes.d.ts"
_HEAD = """\
/** What the server's routes answer. Written by tests/helpers/answer_types.py: do not edit. */

import type { PatchesHeader, RecordHeader, Role } from "./server.js";

/** A float in a JSON answer: non-finite values are spelled. */
export type JsonFloat = number | "NaN" | "Infinity" | "-Infinity";

/** Where an array is behind the JSON, bytes. */
export type ArrayEntry = { offset: number; shape: number[] };

/** Where bytes are behind the JSON. */
export type Bytes = { offset: number; length: number };
"""
_STORED = {
    ("LayerFacts", "roles"): "Role[]", ("Line", "value"): "JsonFloat",
    ("LayerPatches", "header"): "PatchesHeader", ("Maps", "header"): "RecordHeader",
    ("SamplePicture", "role"): "Role",
}  # fmt: skip
"""Class and field -> its type, where the class, which is also read from records, says less."""
_PLAIN = {
    **{int: "number", float: "number", str: "string", bool: "boolean"},
    **{bytes: "Bytes", type(None): "null"},
}


def generated() -> str:
    """The text of the file."""
    signatures = [inspect.signature(route, eval_str=True) for route in ROUTES.values()]
    waiting = [signature.return_annotation for signature in signatures]
    written: dict[Any, str] = {Png: ""}
    while waiting:
        kind = waiting.pop(0)
        if kind not in written:
            written[kind] = "\n" + _interface(kind)
            waiting += [each for *_, hint, _ in _sent(kind) for each in _dataclasses(hint)]
    return "".join([_HEAD, *written.values()])


def _sent(kind: Any, is_inside: bool = False) -> Iterator[tuple[str, str, Any, bool]]:
    """Of each field that is sent: its class, its name, its type, and True if it may be absent."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        if each.name == "facts":
            yield from _sent(hints["facts"], is_inside=True)
        elif each.name != "as_of":
            yield kind, each.name, hints[each.name], each.default is None and not is_inside


def _dataclasses(hint: Any) -> list[Any]:
    if is_dataclass(hint):
        return [hint]
    return [found for inner in get_args(hint) for found in _dataclasses(inner)]


def _interface(kind: Any) -> str:
    lines = [f"/** {_summary(kind)} */", f"export interface {_name(kind)} {{"]
    for owner, name, hint, may_be_absent in _sent(kind):
        if text := _attributes(owner).get(name):
            lines.append(f"  /** {text} */")
        typed = _STORED.get((owner.__name__, name)) or _typed(hint)
        if may_be_absent:
            typed = typed.removesuffix(" | null")
        lines.append(f"  {name.rstrip('_')}{'?' if may_be_absent else ''}: {typed};")
    return "\n".join([*lines, "}", ""])


def _name(kind: Any) -> str:
    return kind.__name__ + ("Answer" if issubclass(kind, Answer) else "")


def _typed(hint: Any) -> str:
    """A Python type as TypeScript has it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint == MaybeNonfinite:
        return "JsonFloat"
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        return _name(hint)
    if origin is np.ndarray:
        return "ArrayEntry"
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_typed, inner))
    if origin in (dict, Mapping):
        return f"Record<string, {_typed(inner[1])}>"
    if origin is tuple and inner[-1] is not Ellipsis:
        return f"[{', '.join(map(_typed, inner))}]"
    if origin in (list, tuple, Sequence):
        element = _typed(inner[0])
        return f"({element})[]" if "|" in element else f"{element}[]"
    raise TypeError(f"no type of the front end for {hint}")


def _summary(kind: Any) -> str:
    """The docstring up to the list of attributes, in one line."""
    return _plain(inspect.getdoc(kind).partition("\n\nAttributes:")[0])


def _attributes(kind: Any) -> dict[str, str]:
    """Attribute -> what the docstring says of it, in one line."""
    listed = inspect.getdoc(kind).partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", listed, re.MULTILINE)
    return {name: _plain(text) for name, text in found}


def _plain(text: str) -> str:
    """A docstring's text as a comment of TypeScript, in one line."""
    for python, other in (("None", "null"), ("True", "true"), ("False", "false")):
        text = re.sub(rf"\b{python}\b", other, text)
    return " ".join(text.split()).replace("``", "`")


if __name__ == "__main__":
    FILE.write_text(generated(), "utf-8")
