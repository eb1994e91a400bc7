"""A run stored by an earlier version opens in TensorBoard and in the tab, with both loaders.

tests/golden/write_run.py wrote the run. The tests import nothing from fmapboard.
"""

from __future__ import annotations

import hashlib
import io
import json
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_visitor import Person
from local_servers import LOAD_LIMIT, Server, tensorboard, wait_for
from PIL import Image
from tab_answers import facts_and_parts, unpacked

GOLDEN = Path(__file__).parents[1] / "golden"
RUN = "run_cde8805"
EXPECTED = json.loads((GOLDEN / f"{RUN}.json").read_text())
STEPS = [0, 10, 20, 30]
TAB = "plugin/feature_maps/data/"
STEP_AT = {"images": "step", "text": "step", "histograms": 1, "scalars": 1}


class StoredRun(Server):
    """A TensorBoard that has loaded the stored run; requests are about that run."""

    def get(self, route: str, **query: object) -> bytes:
        return super().get(route, **{"run": RUN, **query})

    def open(self, route: str, **query: object) -> tuple[dict[str, Any], bytes]:
        """The JSON and the parts of a binary answer."""
        return facts_and_parts(self.get(route, **query))

    def maps(self, layer: str, step: int) -> tuple[dict[str, list[Any]], dict[str, list[str]]]:
        """A layer's arrays by name, and the SHA-256 of its decoded pictures by role."""
        facts, body = self.open(f"{TAB}maps", key=f"fmapboard/{layer}", step=step)
        assert (facts["step"], facts["header"]["step"]) == (step, step)
        arrays: dict[str, list[Any]] = {}
        pixels: dict[str, list[str]] = {}
        for part in facts["parts"]:
            blob = body[part["offset"] : part["offset"] + part["length"]]
            if part["kind"] == "arrays":
                arrays = {
                    name: values.tolist() for name, values in unpacked(part["arrays"], blob).items()
                }
            else:
                pixels.setdefault(part["role"], []).append(sha256_of_pixels(blob))
        return arrays, pixels


def sha256_of_pixels(png: bytes) -> str:
    with Image.open(io.BytesIO(png)) as image:
        return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


@contextmanager
def stored_run(output: Path, *flags: str) -> Iterator[StoredRun]:
    """A real server that has loaded the stored run."""
    with tensorboard(GOLDEN, output, *flags) as server:
        run = StoredRun(server.address)

        def is_loaded() -> bool:
            if RUN not in [one["run"] for one in run.ask(f"{TAB}runs")["runs"]]:
                return False
            layers = run.ask(f"{TAB}layers")["layers"]
            return len(layers) == 5 and all(layer["steps"][-1] == STEPS[-1] for layer in layers)

        wait_for("the stored run", LOAD_LIMIT, is_loaded)
        yield run


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast", "python"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoredRun]:
    output = tmp_path_factory.mktemp("server") / "output"
    with stored_run(output, f"--load_fast={request.param}") as started:
        yield started


@pytest.mark.parametrize("plugin", ["images", "histograms", "scalars", "text"])
def test_every_stored_series_is_listed_with_all_of_its_steps(
    server: StoredRun, plugin: str
) -> None:
    expected = EXPECTED["steps"][plugin]
    assert sorted(server.ask(f"plugin/{plugin}/tags")[RUN]) == sorted(expected)
    for tag, steps in expected.items():
        series = server.ask(f"plugin/{plugin}/{plugin}", tag=tag, sample=0)
        assert [point[STEP_AT[plugin]] for point in series] == steps, tag


def test_the_first_nonfinite_value_is_in_the_text_dashboard(server: StoredRun) -> None:
    (text,) = server.ask("plugin/text/text", tag="fmapboard/first_nonfinite")
    assert text["text"] == (
        "<p>step 30: first values that are not finite: 16 NaN of 80 in the activations of layer "
        "<code>block.0</code> (Conv2d, call 1)</p>"
    )


def test_stored_numbers_and_pictures_are_served(server: StoredRun) -> None:
    dead = server.ask("plugin/scalars/scalars", tag="dead_channels/relu.call2")
    assert [value for _, _, value in dead] == pytest.approx([0.2] * 4)
    weights = server.ask("plugin/histograms/histograms", tag="weights/refine.weight")
    assert [sum(count for _, _, count in buckets) for _, _, buckets in weights] == [225.0] * 4
    for sample, digest in enumerate(EXPECTED["network_input"]):
        tag = f"network_input/sample_{sample}"
        last = server.ask("plugin/images/images", tag=tag, sample=0)[-1]
        png = server.get(
            "plugin/images/individualImage", **dict(urllib.parse.parse_qsl(last["query"]))
        )
        assert sha256_of_pixels(png) == digest


def test_the_tab_lists_every_stored_layer_in_network_order(server: StoredRun) -> None:
    assert {one["run"]: one["layers"] for one in server.ask(f"{TAB}runs")["runs"]}[RUN] == 5
    found = server.ask(f"{TAB}layers")
    assert (found["steps"], found["steps_written"]) == (STEPS, 4)
    assert [(one["name"], one["sample"], one["steps"]) for one in found["inputs"]] == [
        ("", 0, STEPS), ("", 1, STEPS),
    ]  # fmt: skip
    names = EXPECTED["layers"][0]
    assert [{name: layer[name] for name in names} for layer in found["layers"]] == EXPECTED[
        "layers"
    ]


def test_the_tab_opens_every_stored_step_of_every_layer(server: StoredRun) -> None:
    for layer, digests in EXPECTED["pixels"].items():
        for step in STEPS:
            arrays, pixels = server.maps(layer, step)
            assert pixels == digests[str(step)], (layer, step)
            nan_channels = {("block.0", 30): 1, ("block.2", 30): 4}.get((layer, step), 0)
            assert np.isnan(arrays["feature_maps.mean"]).sum() == nan_channels


def test_the_tab_has_the_stored_statistics_of_channels(server: StoredRun) -> None:
    arrays, _ = server.maps("stem.0", 20)
    expected = EXPECTED["stem.0 at step 20"]
    assert {name: arrays[name] for name in expected} == expected
    assert arrays["feature_maps.constant"] == [0.0, 0.0, 1.0, 0.0, 0.0]
    arrays, _ = server.maps("refine", 20)
    assert arrays["activation.dead"] == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_the_tab_has_the_health_and_the_history_of_stored_layers(server: StoredRun) -> None:
    health = {one["key"]: one for one in server.ask(f"{TAB}overview", step=30)["layers"]}
    counts = ("nan", "channels_nonfinite", "channels_constant", "channels_dead")
    assert {key: [one[name] for name in counts] for key, one in health.items()} == {
        "fmapboard/stem.0": [0, 0, 1, 0], "fmapboard/refine": [0, 0, 0, 1],
        "fmapboard/refine.call2": [0, 0, 0, 1], "fmapboard/block.0": [16, 1, 0, 1],
        "fmapboard/block.2": [64, 4, 0, 0],
    }  # fmt: skip
    facts, body = server.open(f"{TAB}history", key="fmapboard/stem.0")
    assert facts["steps"] == STEPS
    history = unpacked(facts["arrays"], body)
    assert history["feature_maps.constant"].tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0]] * 4
    for name in ("feature_maps.maximum", "feature_maps.std"):
        assert history[name][2].tolist() == EXPECTED["stem.0 at step 20"][name]
    numbers = server.ask(f"{TAB}numbers", key="fmapboard/block.0")
    assert numbers["scalars"]["nonfinite/block.0"]["values"] == pytest.approx([0, 0, 0, 0.2])
    assert server.get(f"{TAB}input", step=30).startswith(b"\x89PNG")


def test_the_stored_first_step_opens_even_if_tensorboard_dropped_it(tmp_path: Path) -> None:
    with stored_run(tmp_path / "output", "--samples_per_plugin=images=1,feature_maps=1") as server:
        for layer in server.ask(f"{TAB}layers")["layers"]:
            assert (layer["steps"], layer["step_from_first"]) == ([0, 30], True)
            _, pixels = server.maps(layer["label"], 0)
            assert pixels == EXPECTED["pixels"][layer["label"]]["0"]


def test_a_browser_shows_the_stored_layers_a_grid_and_the_last_step(
    server: StoredRun, visit: Callable[..., Person]
) -> None:
    person = visit(server.address, run=RUN)
    person.drawn(30)
    names = person.see(".tree .layer .name").all_text_contents()
    colours = person.frame.evaluate(
        """() => { const c = document.querySelector(".grid canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(d.buffer)).size; }"""
    )
    assert names == ["stem.0", "refine", "refine (call 2)", "block.0", "block.2"]
    assert colours > 20
