"""The TensorBoard plugin of the tab, and its routes and files as WSGI applications."""

from __future__ import annotations

import gzip
import inspect
import json
import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import Request, Response

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.answers import Answer, Binary, Invalid, Missing, Png, body
from fmapboard.plugin.front_end import ENTRY, static_files
from fmapboard.plugin.loader import keeps_enough
from fmapboard.plugin.log_scan import given_logdirs
from fmapboard.plugin.routes.by_name import ROUTES, Runs, runs
from fmapboard.plugin.source import Source
from fmapboard.runs.provider import Provider

_CACHED = 3600
"""Time in s for which the browser may keep an answer."""
_JSON = "application/json"
_BYTES = "application/octet-stream"
_SMALL = 4096
"""Bytes up to which an answer is not worth compressing; text is always compressed."""
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

    return _guarded(respond)


def file_app(content: str, kind: str) -> Any:
    """A WSGI application that responds with a text file, which is compressed once."""
    packed = gzip.compress(content.encode(), mtime=0)

    def respond(request: Request) -> Response:
        return _respond(request, packed, kind, content_encoding="gzip")

    return _guarded(respond)


def _guarded(respond: Callable[[Request], Response]) -> Any:
    """A WSGI application; an exception becomes a JSON error, and is logged if it is unexpected."""

    def answer(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _refused(request, 405, f"{request.method} is not supported here; use GET")
        try:
            return respond(request)
        except Invalid as error:
            return _refused(request, 400, str(error))
        except Missing as error:
            return _refused(request, 404, str(error))
        except Exception as error:
            _log.exception("fmapboard: the Feature maps tab could not answer %s", request.path)
            return _refused(request, 500, f"{type(error).__name__} on the server; see its log")

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


def _refused(request: Request, status: int, why: str) -> Response:
    content = json.dumps({"error": why})
    return _respond(request, content, _JSON, code=status)


def _respond(request: Request, content: str | bytes, content_type: str, **more: Any) -> Response:
    response: Response = http_util.Respond(request, content, content_type, **more)
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


class FeatureMapsPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """Serves the front end's files and the data routes; all are thread safe.

    Raises:
        FileNotFoundError: a file of the front end is not installed.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        logdirs = given_logdirs(context.flags)
        if context.logdir:
            logdirs = [("", context.logdir)]
        self._logdirs = [path for _, path in logdirs]
        self._keeps_enough = keeps_enough(context.flags)
        self._source: Source | None = None
        provider = context.data_provider
        if provider:
            in_process = context.multiplexer is not None
            self._source = Source(provider, in_process=in_process, logdirs=logdirs)
        self._routes = self._data_routes()
        for path, (content, kind) in static_files().items():
            self._routes[path] = file_app(content, kind)

    def get_plugin_apps(self) -> dict[str, Any]:
        """Path -> WSGI application."""
        return self._routes

    def is_active(self) -> bool:
        """False; TensorBoard shows the tab anyway as soon as a run has records of the plugin."""
        return False

    def frontend_metadata(self) -> Any:
        """The front end's entry module and the tab's title."""
        return base_plugin.FrontendMetadata(es_module_path=ENTRY, tab_name="Feature maps")

    def _data_routes(self) -> dict[str, Any]:
        def all_runs(provider: Provider) -> Runs:
            return runs(provider, self._logdirs, keeps_enough=self._keeps_enough)

        apps = {}
        routes = {**ROUTES, "runs": all_runs}
        for name, route in routes.items():
            apps[f"/data/{name}"] = data_app(route, self._provider)
        return apps

    def _provider(self, environ: Any) -> Provider:
        if self._source is None:
            raise Missing("this TensorBoard has no data provider")
        return self._source.reader(environ)
