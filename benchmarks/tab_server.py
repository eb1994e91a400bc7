"""What TensorBoard does for the tab: the times of its answers, and its memory."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

from synthetic_runs import LARGE

ROUTES = "data/plugin/feature_maps/data/"


def answers(address: str, rounds: int) -> list[tuple[str, list[float], float]]:
    """Times of the server's answers about the large run, ms, from the second request on."""
    routes = ["runs", *(f"{name}?run={LARGE}" for name in ("layers", "health", "timeline"))]
    rows = []
    for route in [*routes, f"overview?run={LARGE}&step=5"]:
        took = []
        for _ in range(rounds + 1):
            started = time.perf_counter()
            with urllib.request.urlopen(f"{address}{ROUTES}{route}") as answer:
                answer.read()
            took.append(1000 * (time.perf_counter() - started))
        rows += [(f"data/{route}, first", took[:1], 2000.0), (f"data/{route}", took[1:], 2000.0)]
    return rows


def wait_until_loaded(address: str, runs: int, steps: int) -> None:
    """Wait until the server has read all runs and the last step of the large one."""
    while True:
        try:
            with urllib.request.urlopen(f"{address}{ROUTES}runs") as answer:
                found = len(json.load(answer)["runs"])
            with urllib.request.urlopen(f"{address}{ROUTES}layers?run={LARGE}") as answer:
                if found == runs and json.load(answer)["steps"][-1] == steps - 1:
                    return
        except urllib.error.HTTPError:
            pass  # not loaded yet
        time.sleep(2)


def memory(pid: int) -> dict[str, float]:
    """Program -> resident memory of a process and its children, MB; on Linux."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {}
    for each in (str(pid), *children):
        status = Path(f"/proc/{each}/status").read_text()
        name, kib = (re.search(rf"{key}:\s+(\S+)", status) for key in ("Name", "VmRSS"))
        if name and kib:
            found[name[1]] = int(kib[1]) / 1024
    return found
