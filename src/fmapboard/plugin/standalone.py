"""The tab without TensorBoard: its routes over event files, in a server of its own.

Usage::

    with listen(port=6006) as listening:
        serve(listening, Path("runs"))     # until Ctrl-C
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug import Request
from werkzeug.serving import WSGIRequestHandler, make_server

from fmapboard.plugin.answers import Answer, Missing
from fmapboard.plugin.apps import data_app, file_app, guarded, refused
from fmapboard.plugin.front_end import static_files
from fmapboard.runs.provider import Provider

if TYPE_CHECKING:
    from fmapboard.plugin.followed import FollowedRuns

LOOPBACK = "127.0.0.1"
_TIMEOUT = 60
"""Time in s after which a connection that sends nothing is closed."""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Feature maps</title>
<link rel="icon" href="data:,">
<script type="module" src="./start.js"></script>
</head>
<body></body>
</html>
"""
_START = 'import { render } from "./index.js";\nrender();\n'
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")
"""A ``Host`` header: a name or an address, an IPv6 one in brackets, and a port."""


def listen(port: int) -> socket.socket:
    """A socket that listens on loopback only.

    Args:
        port: the port; 0 for any free one.

    Raises:
        OSError: the port cannot be had.
    """
    return socket.create_server((LOOPBACK, port))


def serve(listening: socket.socket, logdir: Path, hosts: Collection[str] = ()) -> None:
    """Serve the runs below a directory until it is interrupted.

    Args:
        listening: from `listen`.
        logdir: the directory.
        hosts: names of this machine that a browser may use, besides ``localhost``.
    """

    def load() -> Mapping[str, Any]:
        from fmapboard.plugin.followed import FollowedRuns

        provider = FollowedRuns(logdir)
        threading.Thread(target=provider.follow, name="fmapboard-follow", daemon=True).start()
        return data_apps(provider, str(logdir))

    address, port = listening.getsockname()
    # The page is there at once: what its first questions need is imported meanwhile.
    with ThreadPoolExecutor(1, "fmapboard-load") as loader:
        loading = loader.submit(load)
        server = make_server(
            address,
            port,
            application(loading.result, hosts),
            threaded=True,
            request_handler=_Silent,
            fd=listening.fileno(),
        )
        server.serve_forever()


def data_apps(provider: FollowedRuns, logdir: str) -> dict[str, Any]:
    """Path -> WSGI application of each data route.

    Args:
        provider: of the runs.
        logdir: the directory, as given.
    """
    from fmapboard.plugin.routes.by_name import ROUTES, runs

    def all_runs(provider: Provider) -> Answer:
        return runs(provider, [logdir], keeps_all=True)

    def asked(environ: Any) -> FollowedRuns:
        provider.ask()
        return provider

    routes = {**ROUTES, "runs": all_runs}
    return {f"/data/{name}": data_app(route, asked) for name, route in routes.items()}


def application(data: Callable[[], Mapping[str, Any]], hosts: Collection[str] = ()) -> Any:
    """The WSGI application: the page, the front end's files and the routes.

    Only what is listed is answered, and a run only by its name, so no path of a request reaches the
    file system. A page of another site reaches loopback by a name of its own that leads there; so a
    request is refused unless it names ``localhost``, an IP address or one of the hosts.

    Args:
        data: returns the data routes by path; it may wait for them.
        hosts: see `serve`.
    """
    apps = {}
    for path, (content, kind) in static_files().items():
        apps[path] = file_app(content, kind)
    apps["/start.js"] = file_app(_START, "text/javascript")
    apps["/"] = file_app(_PAGE, "text/html", [("Content-Security-Policy", _POLICY)])
    known = {host.lower() for host in hosts}

    def answer(request: Request) -> Any:
        host = request.environ.get("HTTP_HOST", "")
        if not is_allowed(host, known):
            why = f"host {host!r} is refused; fmapboard serve --allow-host NAME allows it"
            return refused(request, 403, why)
        listed = data() if request.path.startswith("/data/") else apps
        app = listed.get(request.path)
        if app is None:
            raise Missing("there is no such page")
        return app  # which is called in place of a response

    return guarded(answer)


def is_allowed(host: str, known: Collection[str]) -> bool:
    """True if a ``Host`` header names this machine in a way that no other site can.

    Args:
        host: the header.
        known: further names that are allowed, in lower case.

    Example:
        >>> is_allowed("localhost:6006", []), is_allowed("[::1]:6006", [])
        (True, True)
        >>> is_allowed("evil.example:6006", []), is_allowed("gpu7:6006", ["gpu7"])
        (False, True)
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1].lower()
    if name == "localhost" or name in known:
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class _Silent(WSGIRequestHandler):
    """Handles a connection without a line in the log for each request."""

    timeout = _TIMEOUT

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""
