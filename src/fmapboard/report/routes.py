"""Asks the routes of the tab in this process, so that a report shows what the tab shows."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from fmapboard.plugin.plugin import FeatureMapsPlugin
from fmapboard.report.event_log import EventLog
from fmapboard.report.log_provider import LogProvider

_NOT_FOUND, _OK = 404, 200


class Routes:
    """The data routes of the tab over runs.

    Args:
        logs: by name of the run.
    """

    def __init__(self, logs: Mapping[str, EventLog]) -> None:
        provider = LogProvider(logs)
        context = TBContext(data_provider=provider, multiplexer=provider, logdir="")
        self._clients = {
            path.removeprefix("/data/"): Client(app)
            for path, app in FeatureMapsPlugin(context).get_plugin_apps().items()
            if path.startswith("/data/")
        }

    def ask(self, path: str, **query: str | int) -> bytes | None:
        """The body of an answer; None if there is no such data.

        Raises:
            RuntimeError: the route failed.
        """
        answer = self._clients[path].get(query_string={k: str(v) for k, v in query.items()})
        if answer.status_code == _NOT_FOUND:
            return None
        if answer.status_code != _OK:
            raise RuntimeError(f"{path} {query}: {answer.text}")
        return bytes(answer.data)

    def facts(self, path: str, **query: str | int) -> Any:
        """The parsed JSON of an answer; None if there is no such data."""
        body = self.ask(path, **query)
        return None if body is None else json.loads(body)


def opened(body: bytes) -> tuple[Any, bytes]:
    """The JSON of a binary answer (see ``plugin.http.container``), and the bytes behind it."""
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body[4 + length :]


def closed(facts: Any, parts: bytes) -> bytes:
    """The binary answer of this JSON and these bytes."""
    text = dumped(facts)
    return struct.pack("<I", len(text)) + text + parts


def dumped(facts: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(facts, separators=(",", ":"), allow_nan=False).encode()
