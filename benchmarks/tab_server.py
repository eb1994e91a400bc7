"""What TensorBoard does for the tab: the times of its answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from os import killpg
from pathlib import Path
from typing import Any

from synthetic_runs import LARGE
from tab_cost import Row, cpu_ms

ROUTES = "data/plugin/feature_maps/data/"


@contextmanager
def serve(logdir: Path, kept: int, *flags: str) -> Iterator[tuple[str, int]]:
    """Run TensorBoard on a directory and yield its address and process id."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    command += ["--samples_per_plugin", f"images={kept},feature_maps={kept}"]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if found:
                yield found[0], server.pid
                return
        raise SystemExit("TensorBoard ended before it printed its address")
    finally:
        killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def answers(address: str, server: int, rounds: int) -> list[Row]:
    """Times of the server's answers about the large run: the first one, and later ones."""
    routes = ["runs", *(f"{name}?run={LARGE}" for name in ("health", "findings", "layers"))]
    routes += [f"health_step?run={LARGE}&step=5"]
    rows = []
    for route in routes:
        row = Row(f"data/{route}", [], 2000.0)
        size = 0
        for _ in range(rounds + 1):
            before, started = cpu_ms(server), time.perf_counter()
            asked = urllib.request.Request(
                f"{address}{ROUTES}{route}", headers={"Accept-Encoding": "gzip"}
            )
            with urllib.request.urlopen(asked) as answer:
                size = len(answer.read())
            row.ms.append(1000 * (time.perf_counter() - started))
            row.cpu.append(cpu_ms(server) - before)
        name = f"{row.name}, {size / 1e6:.2f} MB"
        rows.append(Row(f"{name}, first", row.ms[:1], row.target, row.cpu[:1]))
        rows.append(Row(name, row.ms[1:], row.target, row.cpu[1:]))
    return rows


def wait_until_loaded(address: str, runs: int) -> int:
    """Wait until the server has read all runs, and for 10 s no new step of the large one.

    Asks only TensorBoard's own routes, so that the tab's first answer comes later.

    Returns:
        Number of steps of the large run that are kept.
    """
    images, query = f"{address}data/plugin/images/", ""
    steps, since = 0, time.monotonic()
    while True:
        now = 0
        if not query and len(_json(f"{address}data/runs")) >= runs:
            tag = next(iter(_json(f"{images}tags").get(LARGE, ())), None)
            query = urllib.parse.urlencode({"run": LARGE, "tag": tag, "sample": 0}) if tag else ""
        if query:
            now = len(_json(f"{images}images?{query}"))
        if now == 0 or now != steps:
            steps, since = now, time.monotonic()
        elif time.monotonic() - since > 10:
            return now
        time.sleep(2)


def _json(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)
