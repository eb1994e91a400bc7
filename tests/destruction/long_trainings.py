"""Long trainings in which every step is logged, alone and with a TensorBoard that reads beside."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attempts import Tried, command, in_process, judged

from fmapboard.formats import tags
from fmapboard.runs.log import EventLog

PROGRAM = Path(__file__).with_name("long_training.py")
_GROWTH = 40_000_000  # bytes that the memory may grow from the second tenth to the last
_LARGER = 1.1  # factor by which a step may take more bytes in the last tenth than in the second
_READING = 1800.0  # s
_POLL, _ANSWER, _START, _CATCH_UP = 5.0, 30.0, 120.0, 120.0  # s
_LOADING, _TRIES = 6, 3
"""Rounds of questions until TensorBoard must have read the run; how often one is asked anew."""
_SERVER_GROWTH = 1.5
"""Factor by which TensorBoard's memory may grow in the second half, when all it keeps is full."""


def attempts_at_many_steps(work: Path, steps: int) -> Iterator[Tried]:
    """Log very many steps, and read them."""
    run = work / "run"
    done = subprocess.run(
        [sys.executable, PROGRAM, run, str(steps), "inf", "0"], capture_output=True, text=True
    )
    if done.returncode:
        yield Tried(f"{steps} steps", f"exit status {done.returncode}: {done.stderr[-300:]}")
        return
    points = [tuple(map(int, line.split())) for line in done.stdout.splitlines()[1:]]
    first, last = points[1], points[-1]
    print(f"{steps} steps: memory {first[1] / 1e6:.0f} MB at {first[0]}, {last[1] / 1e6:.0f} MB at "
          f"the end; {last[2] / last[0]:.0f} bytes per step")  # fmt: skip
    growth = last[1] - first[1]
    yield Tried(
        "memory of the training", f"grew by {growth / 1e6:.0f} MB" if growth > _GROWTH else ""
    )
    early = (points[1][2] - points[0][2]) / (points[1][0] - points[0][0])
    late = (points[-2][2] - points[-3][2]) / (points[-2][0] - points[-3][0])
    larger = f"a step takes {early:.0f} bytes, later {late:.0f}"
    yield Tried("size of the files", larger if late > _LARGER * early else "")
    yield Tried("all steps are in the files", _missing(run, steps))
    for words in (("check", run), ("report", run, "--out", work / "out.html")):
        ended = in_process(command(*words), limit=_READING)
        print(f"{words[0]}: {ended.seconds:.0f} s, {ended.memory / 1e6:.0f} MB")
        yield Tried(words[0], judged(ended, {0, 1}, memory=4_000_000_000))


def _missing(run: Path, steps: int) -> str:
    log = EventLog(run, lambda tag: tag == tags.OVERVIEW)
    found = {step for series in log.series.values() for step in series.steps}
    missing = sorted(set(range(steps)) - found)
    lost = [f"{len(missing)} of {steps} are missing, the first {missing[0]}"] if missing else []
    return "; ".join([*lost, *log.problems])


def attempts_beside_tensorboard(work: Path, minutes: float) -> Iterator[Tried]:
    """Train, and ask a TensorBoard that reads the run for everything, again and again."""
    run = work / "logs" / "run"
    with (work / "training.err").open("wb") as errors:
        training = subprocess.Popen(
            [sys.executable, PROGRAM, run, str(10**9), str(minutes * 60), "0.2"],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    assert training.stdout is not None
    training.stdout.readline()
    with (work / "server.out").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "fmapboard", "serve", work / "logs", "--port", "0", "--no-open"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield from _watched(work, training, server)
    finally:
        training.kill()
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _watched(
    work: Path, training: subprocess.Popen[str], server: subprocess.Popen[bytes]
) -> Iterator[Tried]:
    address = address_of(work / "server.out", server)
    yield Tried("TensorBoard starts", "" if address else (work / "server.out").read_text()[-300:])
    if not address:
        return
    wrong: dict[str, str] = {}
    memory: list[int] = []
    slowest, rounds = 0.0, 0
    while training.poll() is None and server.poll() is None:
        select.select([], [], [], _POLL)
        rounds += 1
        for name, status, seconds in asked(address, "run"):
            slowest = max(slowest, seconds)
            if status != 200 and rounds > _LOADING and not _answers(address, name):
                wrong[name] = f"{name}: {status}"
        memory.append(sum(map(resident, family(server.pid))))
    output, _ = training.communicate()
    done = int(output.split("\n")[-2].split()[0])
    print(f"{done} steps; {rounds} rounds of questions, the slowest took {slowest:.1f} s; "
          f"TensorBoard's memory {memory[len(memory) // 2] / 1e6:.0f} MB in the middle, "
          f"{memory[-1] / 1e6:.0f} MB at the end")  # fmt: skip
    yield Tried("the training", _missing(work / "logs" / "run", done))
    yield Tried("answers", "; ".join(wrong.values()))
    shown = _last_shown(address, done - 1)
    yield Tried(
        "the last step is shown", "" if shown == done - 1 else f"{shown}, expected {done - 1}"
    )
    grown = memory[-1] > _SERVER_GROWTH * memory[len(memory) // 2]
    yield Tried("TensorBoard's memory", f"grew to {memory[-1] / 1e6:.0f} MB" if grown else "")
    printed = (work / "server.out").read_text(errors="replace")
    bad = "Traceback" in printed or "could not answer" in printed
    yield Tried("TensorBoard's log", printed[-500:] if bad else "")


def address_of(output: Path, server: subprocess.Popen[bytes]) -> str | None:
    """The address that TensorBoard prints when it listens; None if it does not come."""
    until = time.monotonic() + _START
    while time.monotonic() < until and server.poll() is None:
        found = re.search(r"TensorBoard \S+ at (http://\S+/)", output.read_text(errors="replace"))
        if found:
            return found[1]
        select.select([], [], [], 0.2)
    return None


def asked(address: str, run: str) -> Iterator[tuple[str, int, float]]:
    """(Route, status, s) of the questions that the tab asks about a run."""
    status, listed, seconds = question(address, "layers", run=run)
    yield "layers", status, seconds
    steps: Sequence[int] = listed.get("steps", [])
    key = listed["layers"][0]["key"] if listed.get("layers") else ""
    queries: list[tuple[str, dict[str, Any]]] = [
        (route, {}) for route in ("health", "findings", "attribution", "patches")
    ]
    if steps and key:
        last = steps[-1]
        queries += [("health_step", {"step": last}), ("maps", {"key": key, "step": last})]
        queries += [("history", {"key": key}), ("numbers", {"key": key})]
    for route, query in [*queries, ("runs", {})]:
        status, _, seconds = question(address, route, run=run, **query)
        yield route, status, seconds


def question(address: str, route: str, **query: object) -> tuple[int, dict[str, Any], float]:
    """The status of an answer, its JSON if it has any, and how long it took, s; 0 for no answer."""
    url = f"{address}data/plugin/feature_maps/data/{route}?{urllib.parse.urlencode(query)}"
    began = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, b""
    except OSError:
        status, body = 0, b""
    try:
        found = json.loads(body)
    except ValueError:
        found = {}
    return status, found if isinstance(found, dict) else {}, time.monotonic() - began


def _answers(address: str, route: str) -> bool:
    """True if a route answers when it is asked anew: TensorBoard drops the steps between others."""
    again = (found for _ in range(_TRIES) for found in asked(address, "run"))
    return any(name == route and status == 200 for name, status, _ in again)


def _last_shown(address: str, expected: int) -> int | None:
    until, shown = time.monotonic() + _CATCH_UP, None
    while shown != expected and time.monotonic() < until:
        _, listed, _ = question(address, "layers", run="run")
        shown = listed["steps"][-1] if listed.get("steps") else None
        select.select([], [], [], 1.0)
    return shown


def family(process: int) -> list[int]:
    """A process and those that it has started."""
    children = Path(f"/proc/{process}/task/{process}/children")
    try:
        found = list(map(int, children.read_text().split()))
    except OSError:
        found = []
    return [process, *(one for child in found for one in family(child))]


def resident(process: int) -> int:
    """The resident memory of a process, bytes; 0 if it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()
