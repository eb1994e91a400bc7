"""The tab in a real TensorBoard: both loaders, a path prefix, sampling, and a broken tab."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from local_servers import LOAD_LIMIT, Server, tensorboard, wait_for
from tab_answers import facts_and_parts, layers_at
from two_layer_runs import log_steps

from fmapboard.plugin.answers import body
from fmapboard.plugin.routes.sheet import sheet
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files

LOGGED, KEY = 60, "fmapboard/0"
BREAKING = "import sys; sys.modules['fmapboard.plugin.plugin'] = None; "


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    """A server that has loaded the whole run, and the number of steps that it should keep."""
    flags, kept = SET_UPS[request.param]
    output = tmp_path_factory.mktemp("server") / "output"
    with tensorboard(long, output, "--reload_interval=1", *flags, warm=True) as server:

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


def test_the_tab_is_listed_and_active(served: tuple[Server, int]) -> None:
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
    assert found["steps_written"] == LOGGED
    assert (found["steps"][0], found["steps"][-1]) == (0, LOGGED - 1)
    images = server.ask("plugin/images/images", run="run", tag="feature_maps_5x1x1x1/0", sample=0)
    same = {image["step"] for image in images}
    assert (len(same), set(found["steps"])) == (kept, {0, *same})


def test_every_listed_step_opens_with_its_pictures(served: tuple[Server, int]) -> None:
    server, _ = served
    for step in layer(server)["steps"]:
        body = server.get("plugin/feature_maps/data/maps", run="run", key=KEY, step=step)
        facts, parts = facts_and_parts(body)
        assert (facts["step"], facts["header"]["step"]) == (step, step)
        drawn = {picture["role"] for picture in facts["pictures"]}
        assert {"feature_maps", "inputs", "gradients_of_maps"} <= drawn
        assert set(facts["missing"]) <= {"kernels"}
        last = facts["pictures"][-1]["png"]
        assert last["offset"] + last["length"] == len(parts)


def test_a_page_of_the_contact_sheet_is_that_of_the_event_files(
    served: tuple[Server, int], long: Path
) -> None:
    server, _ = served
    asked = {"key": [KEY, "fmapboard/1"], "step": list(map(str, layer(server)["steps"][-4:]))}
    page = sheet(Files({"run": EventLog(long / "run")}), "run", **asked, cell=24)
    query = urllib.parse.urlencode({"run": "run", **asked, "cell": 24}, doseq=True)
    assert server.get(f"plugin/feature_maps/data/sheet?{query}") == body(page)
    assert page.arrays["height"].all()


def test_concurrent_requests_get_the_same_answers_as_sequential_ones(
    served: tuple[Server, int],
) -> None:
    server, _ = served
    steps = layer(server)["steps"][:4] * 4

    def ask(step: int) -> bytes:
        return server.get("plugin/feature_maps/data/maps", run="run", key=KEY, step=step)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, steps)) == [ask(step) for step in steps]


def test_the_other_routes_answer(served: tuple[Server, int]) -> None:
    server, _ = served
    body = server.get("plugin/feature_maps/data/health_step", run="run", step=LOGGED)
    health = layers_at(*facts_and_parts(body)).values()
    assert [(one["key"], one["step"], one["channels_nonfinite"]) for one in health] == [
        (KEY, LOGGED - 1, 1), ("fmapboard/1", LOGGED - 1, 1),
    ]  # fmt: skip
    numbers = server.ask("plugin/feature_maps/data/numbers", run="run", key=KEY)
    assert numbers["scalars"]["nonfinite/0"]["values"][-1] == 0.2
    assert numbers["histograms"]["weights/0.weight"]["steps"][-1] == LOGGED - 1
    assert server.get("plugin/feature_maps/data/history", run="run", key=KEY)
    png = server.get("plugin/feature_maps/data/input", run="run", step=LOGGED)
    assert png.startswith(b"\x89PNG")


def test_invalid_requests_get_status_400_or_404(served: tuple[Server, int]) -> None:
    server, _ = served
    maps = "plugin/feature_maps/data/maps"
    assert server.status(maps, run="run", key=KEY, step=10**6) == 404
    assert server.status(maps, run="run", key="no\0such/\U0001f600", step=0) == 404
    assert server.status(maps, run="\0", key=KEY, step=0) == 404
    assert server.status(maps, run="run", key=KEY, step="x") == 400
    assert server.status("plugin/feature_maps/../../../etc/passwd") == 404
    assert server.status("plugin/feature_maps/%2e%2e/loader.py") == 404
    assert "Traceback" not in server.output.read_text()


def test_tensorboard_starts_even_if_the_tab_is_broken(long: Path, tmp_path: Path) -> None:
    with tensorboard(long, tmp_path / "output", SLOW, before=BREAKING) as server:
        assert "feature_maps" not in server.ask("plugins_listing")
        output = server.output.read_text()
        assert "the Feature maps tab is missing (ModuleNotFoundError" in output
        assert "run `fmapboard doctor`" in output
