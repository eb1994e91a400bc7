"""Servers on a free port of loopback: TensorBoard, the routes it answers, and waiting for them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tensorboard as tensorboard_package
from tab_answers import expanded
from warm_python import WarmPython

START_LIMIT, LOAD_LIMIT = 90.0, 60.0  # s


def free_port() -> int:
    """A TCP port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def take_pkg_resources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorBoard 2.20 with setuptools 82: its server imports a module that does not exist."""
    missing = (
        """raise ModuleNotFoundError("No module named 'pkg_resources'", name="pkg_resources")"""
    )
    (folder / "default.py").write_text(missing)
    monkeypatch.setattr(tensorboard_package, "__path__", [str(folder)])
    monkeypatch.delattr(tensorboard_package, "default", raising=False)
    monkeypatch.delitem(sys.modules, "tensorboard.default", raising=False)


def wait_for(what: str, limit: float, holds: Callable[[], Any], *, poll: float = 0.1) -> Any:
    """Call ``holds`` until it returns something true; fails the test after ``limit`` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(poll)
    pytest.fail(f"{what} did not come within {limit:g} s")


@dataclass(frozen=True)
class Server:
    """The routes of a running TensorBoard; ``output`` is a file with all that it printed."""

    address: str
    output: Path | None = None

    def get(self, route: str, **query: object) -> bytes:
        url = f"{self.address}data/{route}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(url, timeout=20) as answer:
            body: bytes = answer.read()
        return body

    def ask(self, route: str, **query: object) -> Any:
        """The JSON of a route."""
        return expanded(json.loads(self.get(route, **query)))

    def status(self, route: str, **query: object) -> int:
        """The HTTP status of a route."""
        try:
            self.get(route, **query)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200


_FAST_START = """import gzip
from tensorboard.plugins.core import core_plugin
core_plugin._gzip = lambda content: gzip.compress(content, 0)
"""


@contextmanager
def tensorboard(
    logdir: Path, output: Path, *flags: str, before: str = "", warm: bool = False
) -> Iterator[Server]:
    """Start TensorBoard on a log directory; it is ended whatever happens.

    Args:
        output: file for what it prints.
        before: Python code that its process runs first.
        warm: start it from a process that has imported TensorBoard, but not the tab. It does not
            compress TensorBoard's own page.
    """
    if warm:
        before += _FAST_START
    code = f"{before}from tensorboard import main; main.run_main()"
    arguments = ["--logdir", str(logdir), "--host", "127.0.0.1", "--port", "0", *flags]
    process: WarmPython | subprocess.Popen[bytes]
    with output.open("wb") as file:
        if warm:
            process = WarmPython(code, *arguments, output=file)
        else:
            command = [sys.executable, "-c", code, *arguments]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
    try:

        def address() -> str | None:
            text = output.read_text()
            assert process.poll() is None, f"TensorBoard has ended:\n{text}"
            found = re.search(r"TensorBoard \S+ at (http://127\.0\.0\.1:\d+/\S*)", text)
            return found[1] if found else None

        yield Server(wait_for("TensorBoard's address", START_LIMIT, address), output)
    finally:
        # A warm one would spend as long on deleting its modules as others on importing them.
        os.killpg(process.pid, signal.SIGKILL if warm else signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)
