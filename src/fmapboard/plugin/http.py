"""Questions and answers over HTTP: checked queries in, JSON or bytes out, never a traceback."""

from __future__ import annotations

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

CACHED = 3600  # s
JSON, BYTES = "application/json", "application/octet-stream"
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_log = logging.getLogger("tensorboard")


class Refused(Exception):
    """A question that has no answer: the HTTP status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def bad(why: str) -> Refused:
    """The question is wrong."""
    return Refused(400, why)


def missing(why: str) -> Refused:
    """There is no such thing, or no longer."""
    return Refused(404, why)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent. ``lasting``: the browser may keep it for an hour."""

    content: Any
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """The checked words of a query string.

    Every method raises `Refused` (400) with the key's name where its word is missing or wrong.
    """

    request: Request

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        value: str | None = self.request.args.get(key)
        if value:
            return value
        if default is None:
            raise bad(f"the query lacks {key}")
        return default

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        value = self.request.args.get(key)
        if value is None and default is not None:
            return default
        if value is None or not _WHOLE.fullmatch(value):
            raise bad(f"the query's {key} is {value!r}, not a whole number")
        return int(value)

    def stamp(self) -> float | None:
        """The wall time ``ts`` that an address carries where its answer may be kept."""
        value = self.request.args.get("ts")
        if value is None:
            return None
        try:
            stamp = float(value)
        except ValueError:
            stamp = math.nan
        if not math.isfinite(stamp):
            raise bad(f"the query's ts is {value!r}, not a time in seconds")
        return stamp


Handler = Callable[[Any, Query], Answer]


def app(handler: Handler) -> Any:
    """A WSGI application that answers by a handler (environ, query) -> `Answer`."""

    def answer(request: Request) -> Response:
        try:
            if request.method not in ("GET", "HEAD"):
                raise Refused(405, f"{request.method} is not understood here; use GET")
            return _send(request, handler(request.environ, Query(request)))
        except Refused as refused:
            return _complain(request, refused.status, str(refused))
        except Exception as error:
            _log.exception("fmapboard: the Feature maps tab could not answer %s", request.path)
            return _complain(request, 500, f"{type(error).__name__} on the server; see its log")

    return Request.application(answer)


def _send(request: Request, answer: Answer) -> Response:
    response: Response = http_util.Respond(
        request,
        answer.content,
        answer.content_type,
        expires=CACHED if answer.lasting else 0,
        headers=list(answer.headers),
    )
    return response


def _complain(request: Request, status: int, why: str) -> Response:
    response: Response = http_util.Respond(request, {"error": why}, JSON, code=status)
    return response


def container(facts: dict[str, Any], parts: Sequence[bytes], *, lasting: bool = False) -> Answer:
    """One binary answer: the length of a JSON text (u32, little-endian), the text, the parts."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False).encode()
    return Answer(b"".join([struct.pack("<I", len(text)), text, *parts]), BYTES, lasting=lasting)
