"""What routes return, and its bytes: JSON, JSON with bytes behind it, or a picture."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.tab_records import Floats


class Invalid(Exception):
    """A parameter of a route is invalid; the message names it."""


class Missing(Exception):
    """There is no such data, or no longer."""


class Answer:
    """Base of the answers: frozen dataclasses, which are sent as JSON.

    Left out are fields of type ``bytes``, ``as_of``, those whose default is None while they are
    None, and the underscore at the end of a name that is a Python keyword. In place of a field of
    type `LayerFacts`, its fields are sent.
    """

    __slots__ = ()

    @property
    def as_of(self) -> float | None:
        """The wall time, s, that identifies the data of an answer that the browser may keep."""
        return None


class Binary(Answer):
    """Base of the answers that are sent as JSON with bytes behind it."""

    __slots__ = ()
    compresses: ClassVar[bool] = False
    """True if the bytes become smaller by compression; those of pictures do not."""

    def packed(self) -> tuple[Any, list[bytes]]:
        """The JSON, and the bytes that follow one another behind it."""
        raise NotImplementedError


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
    """The bytes that are sent, in parts; of a binary answer, the first is all but its bytes."""
    if isinstance(answer, Png):
        return [answer.png]
    if isinstance(answer, Binary):
        facts, parts = answer.packed()
        text = dumped(facts)
        return [struct.pack("<I", len(text)) + text, *parts]
    return [dumped(answer)]


def packed_arrays(answer: Binary, arrays: Mapping[str, Floats]) -> tuple[Any, list[bytes]]:
    """An answer, with names and shapes as its ``arrays``, and the arrays as float32."""
    listed = [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()]
    with np.errstate(over="ignore"):
        values = [array.astype("<f4").tobytes() for array in arrays.values()]
    return {**as_dict(answer), "arrays": listed}, values


def dumped(content: Any) -> bytes:
    """Compact JSON; non-finite numbers are strings, as TensorBoard sends them."""
    try:
        text = json.dumps(content, default=as_dict, separators=(",", ":"), allow_nan=False)
    except ValueError:  # rare, and a look at every number would take most of the time
        text = json.dumps(_spelled(content), separators=(",", ":"))
    return text.encode()


def as_dict(answer: Any) -> dict[str, Any]:
    """The fields of a dataclass by the names that are sent, those of other dataclasses as they are.

    Raises:
        TypeError: it is none.
    """
    names, values_of, optional = _fields(type(answer))  # type: ignore[arg-type]  # a class is hashable
    found = dict(zip(names, values_of(answer), strict=True))
    for name in optional:
        if found[name] is None:
            del found[name]
    return found


@lru_cache
def _fields(kind: Any) -> tuple[list[str], Callable[[Any], tuple[Any, ...]], list[str]]:
    """The names that are sent, what gets their values, and which of them may be absent."""
    sent = [each for each in fields(kind) if each.type != "bytes" and each.name != "as_of"]
    places: dict[str, str] = {}
    for each in sent:
        if each.type == "LayerFacts":
            places |= {fact.name: f"{each.name}.{fact.name}" for fact in fields(LayerFacts)}
        else:
            places[each.name.rstrip("_")] = each.name
    optional = [each.name.rstrip("_") for each in sent if each.default is None]
    values_of = attrgetter(*places.values())
    if len(places) == 1:
        return list(places), lambda answer: (values_of(answer),), optional
    return list(places), values_of, optional


def _spelled(content: Any) -> Any:
    if is_dataclass(content):
        content = as_dict(content)
    if isinstance(content, Mapping):
        return {key: _spelled(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_spelled(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return "NaN" if math.isnan(content) else "Infinity" if content > 0 else "-Infinity"
    return content
