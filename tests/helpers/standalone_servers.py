"""``fmapboard serve --standalone`` on a free port of loopback."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LIMIT = 60  # s


@dataclass(frozen=True)
class Standalone:
    """A running server, its address, and its process."""

    address: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def get(
        self, path: str, host: str | None = "localhost", method: str = "GET"
    ) -> tuple[int, bytes]:
        """Status and body of the answer to a request for a path that is sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        connection._validate_path = lambda url: None  # type: ignore[attr-defined]
        try:
            connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
            if host is not None:
                connection.putheader("Host", host)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def standalone(logdir: Path, *options: str) -> Iterator[Standalone]:
    """Start the server on a log directory; it is ended whatever happens."""
    with started("serve", str(logdir), "--standalone", *options) as server:
        yield server


@contextmanager
def started(*words: str, port: int = 0, stderr: Any = subprocess.DEVNULL) -> Iterator[Standalone]:
    """Start an ``fmapboard`` command that ends in the server; it is ended whatever happens."""
    command = [sys.executable, "-m", "fmapboard", *words, "--port", str(port), "--no-open"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=stderr, text=True) as process:
        timer = threading.Timer(LIMIT, process.kill)  # so that a test fails instead of hanging
        timer.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            timer.cancel()
            yield Standalone(line.split()[-1], process)
        finally:
            timer.cancel()
            process.kill()
