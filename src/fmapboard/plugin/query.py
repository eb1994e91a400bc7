"""Routes of the former kind, which are given a query and return content."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fmapboard.plugin import answers
from fmapboard.plugin.answers import Invalid, Missing

JSON, BYTES = "application/json", "application/octet-stream"
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_LOW = -(2**63)
bad, missing = Invalid, Missing


@dataclass(frozen=True, slots=True)
class Answer(answers.Answer):
    """The body and headers of a response."""

    content: Any
    """JSON-serializable data, or bytes, as ``content_type`` says."""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    lasting: bool = False
    """True if the browser may cache the response, for an hour."""
    compress: bool = False
    """True to compress bytes at a low level, if the browser accepts that; text always is."""


def long_answer(content: dict[str, Any]) -> Answer:
    """A JSON answer with very many values; they must be plain, and non-finite ones `spelled`.

    TensorBoard searches all other JSON for values that JSON cannot represent, which takes most of
    the time of a long answer.
    """
    return Answer(json.dumps(content, separators=(",", ":"), allow_nan=False))


def spelled(value: float) -> float | str:
    """A number for `long_answer`; non-finite ones are strings, as TensorBoard sends them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(frozen=True, slots=True)
class Query:
    """The validated values of a query string.

    Every method raises `Refused` (400) with the key's name if the value is missing or invalid.
    """

    args: Any

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string."""
        value: str | None = self.args.get(key)
        if value:
            return value
        if default is None:
            raise bad(f"the query has no {key}")
        return default

    def texts(self, key: str) -> list[str]:
        """All values of a key, at least one; none is empty."""
        values: list[str] = self.args.getlist(key)
        if not values or not all(values):
            raise bad(f"the query has no {key}, or an empty one")
        return values

    def whole(self, key: str, default: int | None = None) -> int:
        """An integer of 64 bits."""
        value = self.args.get(key)
        if value is None and default is not None:
            return default
        if value is None or not _WHOLE.fullmatch(value) or not _LOW <= int(value) < -_LOW:
            raise bad(f"the query's {key} must be an integer, not {value!r}")
        return int(value)

    def stamp(self) -> float | None:
        """The wall time ``ts``, s, or None; it lets the browser cache the response."""
        value = self.args.get("ts")
        if value is None:
            return None
        try:
            stamp = float(value)
        except ValueError:
            stamp = math.nan
        if not math.isfinite(stamp):
            raise bad(f"the query's ts must be a time in seconds, not {value!r}")
        return stamp


def container(
    facts: dict[str, Any],
    parts: Sequence[bytes],
    *,
    lasting: bool = False,
    compress: bool = False,
) -> Answer:
    """A binary answer: the length of a JSON text (uint32, little-endian), the text, the parts.

    Args:
        facts: the JSON data.
        parts: follow one another without padding.
        lasting: see `Answer`.
        compress: see `Answer`; pictures are compressed already.
    """
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False).encode()
    body = b"".join([struct.pack("<I", len(text)), text, *parts])
    return Answer(body, BYTES, lasting=lasting, compress=compress)
