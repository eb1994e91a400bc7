"""HTTP requests and responses: validated queries in, JSON or bytes out, errors as JSON."""

from __future__ import annotations

import gzip
import json
import logging
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorboard.backend import http_util
from werkzeug import Request, Response

CACHED = 3600  # s, how long the browser may cache a `lasting` answer
JSON, BYTES = "application/json", "application/octet-stream"
_SMALL = 4096  # bytes, up to which an answer is not worth compressing
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_LOW = -(2**63)
_log = logging.getLogger("tensorboard")


class Refused(Exception):
    """A request that cannot be answered: an HTTP status, and the reason as the text."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def bad(why: str) -> Refused:
    """The error for an invalid query: status 400."""
    return Refused(400, why)


def missing(why: str) -> Refused:
    """The error for data that does not exist, or no longer: status 404."""
    return Refused(404, why)


@dataclass(frozen=True, slots=True)
class Answer:
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

    request: Request

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string."""
        value: str | None = self.request.args.get(key)
        if value:
            return value
        if default is None:
            raise bad(f"the query has no {key}")
        return default

    def texts(self, key: str) -> list[str]:
        """All values of a key, at least one; none is empty."""
        values: list[str] = self.request.args.getlist(key)
        if not values or not all(values):
            raise bad(f"the query has no {key}, or an empty one")
        return values

    def whole(self, key: str, default: int | None = None) -> int:
        """An integer of 64 bits."""
        value = self.request.args.get(key)
        if value is None and default is not None:
            return default
        if value is None or not _WHOLE.fullmatch(value) or not _LOW <= int(value) < -_LOW:
            raise bad(f"the query's {key} must be an integer, not {value!r}")
        return int(value)

    def stamp(self) -> float | None:
        """The wall time ``ts``, s, or None; it lets the browser cache the response."""
        value = self.request.args.get("ts")
        if value is None:
            return None
        try:
            stamp = float(value)
        except ValueError:
            stamp = math.nan
        if not math.isfinite(stamp):
            raise bad(f"the query's ts must be a time in seconds, not {value!r}")
        return stamp


Handler = Callable[[Any, Query], Answer]


def app(handler: Handler) -> Any:
    """A WSGI application that responds with the `Answer` of ``handler(environ, query)``.

    `Refused` becomes a JSON error with its status; any other exception is logged, with status 500.
    """

    def answer(request: Request) -> Response:
        try:
            if request.method not in ("GET", "HEAD"):
                raise Refused(405, f"{request.method} is not supported here; use GET")
            return _send(request, handler(request.environ, Query(request)))
        except Refused as refused:
            return _send_error(request, refused.status, str(refused))
        except Exception as error:
            _log.exception("fmapboard: the Feature maps tab could not answer %s", request.path)
            return _send_error(request, 500, f"{type(error).__name__} on the server; see its log")

    return Request.application(answer)


def _send(request: Request, answer: Answer) -> Response:
    content, encoding = answer.content, None
    if answer.compress and len(content) > _SMALL and request.accept_encodings["gzip"]:
        content, encoding = gzip.compress(content, 1, mtime=0), "gzip"
    response: Response = http_util.Respond(
        request,
        content,
        answer.content_type,
        expires=CACHED if answer.lasting else 0,
        content_encoding=encoding,
        headers=list(answer.headers),
    )
    return response


def _send_error(request: Request, status: int, why: str) -> Response:
    response: Response = http_util.Respond(request, {"error": why}, JSON, code=status)
    return response


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
