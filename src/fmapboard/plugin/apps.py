"""The routes and files of the tab as WSGI applications, in TensorBoard and without it."""

from __future__ import annotations

import gzip
import inspect
import json
import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from werkzeug import Request, Response

from fmapboard.plugin.answers import Answer, Binary, Invalid, Missing, Png, body
from fmapboard.runs.provider import Provider

_CACHED = 3600
"""Time in s for which the browser may keep an answer."""
_JSON = "application/json"
_BYTES = "application/octet-stream"
_SMALL = 4096
"""Bytes up to which an answer is not worth compressing; text is always compressed."""
_LEVEL = 3
"""How hard gzip tries on text: a higher level takes longer than loopback needs for the bytes."""
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_LOW = -(2**63)
_log = logging.getLogger("tensorboard")

Route = Callable[..., Answer]


def data_app(route: Route, provider: Callable[[Any], Provider]) -> Any:
    """A WSGI application that responds with a route's answer.

    The values of the query have the names and types of the route's parameters. With ``ts``, the
    wall time of the requested data, the browser may keep the response if the data is of that time.

    Args:
        route: is given a provider and the parameters.
        provider: returns the provider for a WSGI environment.
    """
    signature = inspect.signature(route, eval_str=True)
    _, *parameters = signature.parameters.values()

    def respond(request: Request) -> Response:
        given = {parameter.name: _read(request, parameter) for parameter in parameters}
        stamp = _stamp(request)
        answer = route(provider(request.environ), **given)
        return _sent(request, answer, lasts=stamp == answer.as_of)

    return guarded(respond)


def file_app(content: str, kind: str, headers: Sequence[tuple[str, str]] = ()) -> Any:
    """A WSGI application that responds with a text file, which is compressed once.

    Args:
        content: of the file.
        kind: its content type.
        headers: further headers of the response.
    """
    packed = gzip.compress(content.encode(), mtime=0)

    def respond(request: Request) -> Response:
        return _respond(request, packed, kind, content_encoding="gzip", headers=headers)

    return guarded(respond)


def guarded(respond: Callable[[Request], Response]) -> Any:
    """A WSGI application; an exception becomes a JSON error, and is logged if it is unexpected.

    Args:
        respond: answers a request with GET or HEAD; others are refused.
    """

    def answer(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return refused(request, 405, f"{request.method} is not supported here; use GET")
        try:
            return respond(request)
        except Invalid as error:
            return refused(request, 400, str(error))
        except Missing as error:
            return refused(request, 404, str(error))
        except Exception as error:
            _log.exception("fmapboard: the Feature maps tab could not answer %s", request.path)
            return refused(request, 500, f"{type(error).__name__} on the server; see its log")

    return Request.application(answer)


def _sent(request: Request, answer: Answer, *, lasts: bool) -> Response:
    content = body(answer)
    expires = _CACHED if lasts else 0
    if isinstance(answer, Png):
        headers = [("X-Step", str(answer.step))]
        return _respond(request, content, "image/png", expires=expires, headers=headers)
    if not isinstance(answer, Binary):
        return _respond(request, content, _JSON, expires=expires)
    encoding = None
    is_worth_it = answer.compresses and len(content) > _SMALL
    if is_worth_it and request.accept_encodings["gzip"]:
        encoding = "gzip"
        content = gzip.compress(content, 1, mtime=0)
    return _respond(request, content, _BYTES, expires=expires, content_encoding=encoding)


def refused(request: Request, status: int, why: str) -> Response:
    """A response that says in JSON why there is no answer."""
    content = json.dumps({"error": why})
    return _respond(request, content, _JSON, code=status)


def _respond(
    request: Request,
    content: str | bytes,
    content_type: str,
    *,
    code: int = 200,
    expires: int = 0,
    content_encoding: str | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Response:
    """A response; text is compressed if the browser takes it.

    Args:
        request: what is answered.
        content: text, or bytes.
        content_type: of the content.
        code: the HTTP status.
        expires: time in s for which the browser may keep the response.
        content_encoding: "gzip" if the content is compressed.
        headers: further ones.
    """
    body = content.encode() if isinstance(content, str) else content
    takes_gzip = bool(request.accept_encodings["gzip"])
    is_text = content_type != _BYTES and not content_type.startswith("image/")
    if content_encoding is None and is_text and takes_gzip:
        body = gzip.compress(body, _LEVEL, mtime=0)
        content_encoding = "gzip"
    elif content_encoding is not None and not takes_gzip:
        body = gzip.decompress(body)
        content_encoding = None
    if content_type.startswith("text/"):
        content_type += "; charset=utf-8"
    response = Response(body, code, list(headers), content_type=content_type)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if content_encoding is not None:
        response.headers["Content-Encoding"] = content_encoding
    lasts = f"private, max-age={expires}" if expires else "no-cache, must-revalidate"
    response.headers["Cache-Control"] = lasts
    return response


def _read(request: Request, parameter: inspect.Parameter) -> Any:
    """The value of a parameter in a query; its default if it is not there.

    Raises:
        Invalid: the value is missing, or of another type.
    """
    name = parameter.name
    default = parameter.default
    is_required = default is parameter.empty
    values: list[str] = request.args.getlist(name)
    if parameter.annotation == Sequence[str]:
        if not values or not all(values):
            raise Invalid(f"the query has no {name}, or an empty one")
        return values
    value = values[0] if values else None
    if parameter.annotation is int:
        if value is None and not is_required:
            return default
        return _whole(name, value)
    if value:
        return value
    if is_required:
        raise Invalid(f"the query has no {name}")
    return default


def _whole(name: str, value: str | None) -> int:
    """An integer of 64 bits."""
    if value is not None and _WHOLE.fullmatch(value):
        number = int(value)
        if _LOW <= number < -_LOW:
            return number
    raise Invalid(f"the query's {name} must be an integer, not {value!r}")


def _stamp(request: Request) -> float:
    """The wall time ``ts``, s; NaN, which equals no time, if it is not there."""
    stamp = request.args.get("ts", math.nan, float)
    if "ts" in request.args and not math.isfinite(stamp):
        raise Invalid(f"the query's ts must be a time in seconds, not {request.args['ts']!r}")
    return stamp
