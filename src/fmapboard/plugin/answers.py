"""What routes return, and its bytes: JSON, JSON with arrays and bytes behind it, or a picture."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, get_type_hints

import numpy as np

MaybeNonfinite = Annotated[float, "sent as text if it is not finite"]


class Invalid(Exception):
    """A parameter of a route is invalid; the message names it."""


class Missing(Exception):
    """There is no such data, or no longer."""


class Answer:
    """Base of the answers: frozen dataclasses, which are sent as JSON.

    Left out are ``as_of``, fields whose default is None while they are None, and the underscore at
    the end of a name that is a Python keyword. In place of a field ``facts``, the fields of its
    type are sent.
    """

    __slots__ = ()

    @property
    def as_of(self) -> float | None:
        """The wall time, s, that identifies the data of an answer that the browser may keep."""
        return None


class Binary(Answer):
    """Base of the answers that are sent as JSON with arrays and bytes behind it.

    The JSON has the ``offset`` of each behind it, and the ``shape`` of an array or the ``length``
    of bytes. Arrays are sent as uint8 if they are of that type, otherwise as float32.
    """

    __slots__ = ()
    compresses: ClassVar[bool] = False
    """True if the bytes become smaller by compression; those of pictures do not."""


@dataclass(frozen=True, slots=True)
class Png(Answer):
    """A picture.

    Attributes:
        png: the file's bytes.
        step: the step that it shows.
        as_of: see `Answer`.
    """

    png: bytes
    step: int
    as_of: float | None = None


def body(answer: Answer) -> bytes:
    """The bytes that are sent."""
    return b"".join(pieces(answer))


def pieces(answer: Answer) -> list[bytes]:
    """The bytes that are sent, in parts; of a binary answer, the first is the JSON."""
    if isinstance(answer, Png):
        return [answer.png]
    text, *parts = dumped(answer)
    if isinstance(answer, Binary):
        return [struct.pack("<I", len(text)) + text, *parts]
    return [text]


def dumped(content: Any) -> list[bytes]:
    """Compact JSON, and the arrays and bytes that it refers to (see `Binary`).

    Non-finite numbers are strings, as TensorBoard sends them.
    """
    parts: list[bytes] = []

    def sent(value: Any) -> dict[str, Any]:
        if not isinstance(value, (bytes, np.ndarray)):
            return _as_dict(value)
        offset = sum(map(len, parts))
        if isinstance(value, bytes):
            parts.append(value)
            return {"offset": offset, "length": len(value)}
        dtype = "u1" if value.dtype == np.uint8 else "<f4"
        with np.errstate(over="ignore"):
            array = value.astype(dtype)
        parts.append(array.tobytes())
        return {"offset": offset, "shape": value.shape}

    try:
        text = json.dumps(content, default=sent, separators=(",", ":"), allow_nan=False)
    except ValueError:  # rare, and a look at every number would take most of the time
        parts.clear()
        text = json.dumps(_spelled(content), default=sent, separators=(",", ":"))
    return [text.encode(), *parts]


def _as_dict(answer: Any) -> dict[str, Any]:
    """The fields of a dataclass by the names that are sent, those of other dataclasses as they are.

    Raises:
        TypeError: it is none.
    """
    found = {}
    for name, value_of, is_optional in _fields(type(answer)):  # type: ignore[arg-type]  # a class is hashable
        value = value_of(answer)
        if value is not None or not is_optional:
            found[name] = value
    return found


@lru_cache
def _fields(kind: Any) -> list[tuple[str, Callable[[Any], Any], bool]]:
    """Of each field: the name that is sent, what gets its value, and True if it may be absent."""
    found: list[tuple[str, Callable[[Any], Any], bool]] = []
    for field in fields(kind):
        if field.name == "facts":
            facts = get_type_hints(kind)["facts"]
            for fact in fields(facts):
                found.append((fact.name, attrgetter(f"facts.{fact.name}"), False))
        elif field.name != "as_of":
            is_optional = field.default is None
            found.append((field.name.rstrip("_"), attrgetter(field.name), is_optional))
    return found


def _spelled(content: Any) -> Any:
    if is_dataclass(content):
        content = _as_dict(content)
    if isinstance(content, Mapping):
        return {key: _spelled(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_spelled(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        if math.isnan(content):
            return "NaN"
        return "Infinity" if content > 0 else "-Infinity"
    return content
