"""The tab in a real TensorBoard: both loaders, a path prefix, sampling, and a broken tab."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

START_LIMIT, LOAD_LIMIT, POLL = 90.0, 60.0, 0.1  # s
LOGGED, KEY = 60, "fmapboard/0"
BREAKING = "import sys; sys.modules['fmapboard.plugin.plugin'] = None; "
START = "from tensorboard import main; main.run_main()"


@dataclass(frozen=True)
class Server:
    """A running TensorBoard; asks its routes."""

    address: str
    said: Path

    def get(self, route: str, **query: object) -> bytes:
        words = f"?{urllib.parse.urlencode(query)}" if query else ""
        with urllib.request.urlopen(f"{self.address}data/{route}{words}", timeout=20) as answer:
            body: bytes = answer.read()
        return body

    def ask(self, route: str, **query: object) -> Any:
        return json.loads(self.get(route, **query))

    def status(self, route: str, **query: object) -> int:
        try:
            self.get(route, **query)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200


def wait_for(what: str, limit: float, holds: Callable[[], Any]) -> Any:
    """Poll until it holds; fails after ``limit`` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(POLL)
    pytest.fail(f"{what} did not come within {limit:g} s")


@contextmanager
def tensorboard(logdir: Path, said: Path, *flags: str, before: str = "") -> Iterator[Server]:
    """A real server on a free port of loopback; ended in every case."""
    command = [
        sys.executable, "-c", before + START, "--logdir", str(logdir), "--host", "127.0.0.1",
        "--port", "0", "--reload_interval", "1", *flags,
    ]  # fmt: skip
    with said.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:

        def address() -> str | None:
            text = said.read_text()
            assert process.poll() is None, f"TensorBoard has ended:\n{text}"
            found = re.search(r"TensorBoard \S+ at (http://127\.0\.0\.1:\d+/\S*)", text)
            return found[1] if found else None

        yield Server(wait_for("TensorBoard's address", START_LIMIT, address), said)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory, log_steps: Callable[..., None]) -> Path:
    root = tmp_path_factory.mktemp("long")
    log_steps(root / "run", steps=range(LOGGED))
    return root


FAST, SLOW = "--load_fast=true", "--load_fast=false"
SET_UPS: dict[str, tuple[Sequence[str], int]] = {
    "fast": ([FAST], 50),
    "python": ([SLOW], 50),
    "fast below a path": ([FAST, "--path_prefix=/a/b"], 50),
    "fast with the user's number": ([FAST, "--samples_per_plugin=images=4,scalars=9"], 4),
    "python with the user's number": ([SLOW, "--samples_per_plugin=feature_maps=4"], 4),
}


@pytest.fixture(scope="module", params=SET_UPS)
def served(
    request: pytest.FixtureRequest, long: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, int]]:
    """A server that has read the run to its end, and how many steps it is to keep."""
    flags, kept = SET_UPS[request.param]
    with tensorboard(long, tmp_path_factory.mktemp("server") / "said", *flags) as server:

        def loaded() -> bool:
            runs = server.ask("plugin/feature_maps/data/runs")["runs"]
            if not runs:
                return False
            layers = server.ask("plugin/feature_maps/data/layers", run="run")["layers"]
            return all(layer["steps"][-1] == LOGGED - 1 for layer in layers)

        wait_for("the run", LOAD_LIMIT, loaded)
        yield server, kept


def layer(server: Server) -> dict[str, Any]:
    layers = server.ask("plugin/feature_maps/data/layers", run="run")["layers"]
    (one,) = [layer for layer in layers if layer["key"] == KEY]
    return one


def test_the_tab_is_there_and_active(served: tuple[Server, int]) -> None:
    server, _ = served
    listed = server.ask("plugins_listing")["feature_maps"]
    assert (listed["enabled"], listed["tab_name"]) == (True, "Feature maps")
    path = urllib.parse.urlsplit(server.address).path
    assert listed["loading_mechanism"] == {
        "type": "IFRAME",
        "module_path": f"{path}data/plugin/feature_maps/index.js",
    }
    assert b"export" in server.get("plugin/feature_maps/index.js")
    assert b'import("./index.js")' in server.get("plugin_entry.html", name="feature_maps")


def test_enough_steps_are_kept_and_the_first_one_is_among_them(
    served: tuple[Server, int],
) -> None:
    server, kept = served
    found = layer(server)
    own = len(found["steps"]) - found["step_from_first"]
    assert (own, found["steps_written"]) == (kept, LOGGED)
    assert (found["steps"][0], found["steps"][-1]) == (0, LOGGED - 1)
    images = server.ask("plugin/images/images", run="run", tag="feature_maps_5x1x1x1/0", sample=0)
    same = set(found["steps"][found["step_from_first"] :])
    assert {image["step"] for image in images} == same


def test_every_listed_step_opens_with_its_pictures(served: tuple[Server, int]) -> None:
    server, _ = served
    for step in layer(server)["steps"]:
        body = server.get("plugin/feature_maps/data/maps", run="run", key=KEY, step=step)
        (length,) = struct.unpack_from("<I", body)
        facts = json.loads(body[4 : 4 + length])
        assert (facts["step"], facts["header"]["step"]) == (step, step)
        drawn = {part["role"] for part in facts["parts"] if part["kind"] == "png"}
        assert {"feature_maps", "inputs", "gradients_of_maps"} <= drawn
        assert set(facts["missing"]) <= {"kernels"}
        assert sum(part["length"] for part in facts["parts"]) == len(body) - 4 - length


def test_many_questions_at_once_are_answered_as_one_after_the_other(
    served: tuple[Server, int],
) -> None:
    server, _ = served
    steps = layer(server)["steps"][:4] * 4

    def ask(step: int) -> bytes:
        return server.get("plugin/feature_maps/data/maps", run="run", key=KEY, step=step)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, steps)) == [ask(step) for step in steps]


def test_the_other_questions_are_answered(served: tuple[Server, int]) -> None:
    server, _ = served
    health = server.ask("plugin/feature_maps/data/overview", run="run", step=LOGGED)["layers"]
    assert [(one["key"], one["step"], one["channels_nonfinite"]) for one in health] == [
        (KEY, LOGGED - 1, 1), ("fmapboard/1", LOGGED - 1, 1),
    ]  # fmt: skip
    numbers = server.ask("plugin/feature_maps/data/numbers", run="run", key=KEY)
    assert numbers["scalars"]["nonfinite/0"]["values"][-1] == 0.2
    assert numbers["histograms"]["weights/0.weight"]["steps"][-1] == LOGGED - 1
    assert server.get("plugin/feature_maps/data/history", run="run", key=KEY)
    png = server.get("plugin/feature_maps/data/input", run="run", step=LOGGED)
    assert png.startswith(b"\x89PNG")


def test_wrong_questions_are_the_caller_s_fault(served: tuple[Server, int]) -> None:
    server, _ = served
    maps = "plugin/feature_maps/data/maps"
    assert server.status(maps, run="run", key=KEY, step=10**6) == 404
    assert server.status(maps, run="run", key="no\0such/\U0001f600", step=0) == 404
    assert server.status(maps, run="\0", key=KEY, step=0) == 404
    assert server.status(maps, run="run", key=KEY, step="x") == 400
    assert server.status("plugin/feature_maps/../../../etc/passwd") == 404
    assert server.status("plugin/feature_maps/%2e%2e/loader.py") == 404
    assert "Traceback" not in server.said.read_text()


def test_tensorboard_starts_though_the_tab_is_broken(long: Path, tmp_path: Path) -> None:
    with tensorboard(long, tmp_path / "said", SLOW, before=BREAKING) as server:
        assert "feature_maps" not in server.ask("plugins_listing")
        said = server.said.read_text()
        assert "the Feature maps tab is missing (ModuleNotFoundError" in said
        assert "run `fmapboard doctor`" in said
