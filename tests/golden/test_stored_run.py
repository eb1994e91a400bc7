"""The stored runs of format 1 open in TensorBoard and the tab with both loaders, and elsewhere.

``tests/golden/write_run.py`` wrote them, and ``expected.json`` beside them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_servers import LOAD_LIMIT, Server, tensorboard, wait_for
from PIL import Image
from tab_answers import bytes_of, facts_and_parts, layers_at, unpacked

from fmapboard.cli.main import run as run_command
from fmapboard.report.write import write_report

FORMAT_1 = Path(__file__).with_name("format_1")
EXPECTED = json.loads((FORMAT_1 / "expected.json").read_text())
RUNS = sorted(EXPECTED)
STEPS = {"training": [0, 10, 20], "sequences": [0, 1], "images": [0, 1]}
LAYERS = {
    "training": ["stem.0", "refine", "unused", "refine.call2", "block.0"],
    "sequences": ["0", "2"],
    "images": ["stem.0"],
}
TAB = "plugin/feature_maps/data/"
STEP_AT = {"images": "step", "text": "step", "histograms": 1, "scalars": 1}


class StoredRuns(Server):
    """A TensorBoard that has loaded the stored runs."""

    def open(self, route: str, **query: object) -> tuple[dict[str, Any], bytes]:
        """The JSON and the parts of a binary answer."""
        return facts_and_parts(self.get(f"{TAB}{route}", **query))

    def tab(self, route: str, **query: object) -> Any:
        return self.ask(f"{TAB}{route}", **query)

    def layers(self, run: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.tab("layers", run=run)["layers"]
        return listed

    def maps(
        self, run: str, key: str, step: int
    ) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
        """A layer's arrays by name, and the digests of its decoded pictures by tag."""
        facts, body = self.open("maps", run=run, key=key, step=step)
        assert facts["missing"] == []
        assert (facts["step"], facts["header"]["step"], facts["header"]["format"]) == (
            step,
            step,
            1,
        )
        tag_of = {picture["role"]: picture["tag"] for picture in facts["header"]["pictures"]}
        pixels: dict[str, list[str]] = {}
        for picture in facts["pictures"]:
            png = bytes_of(picture["png"], body)
            pixels.setdefault(tag_of[picture["role"]], []).append(digest(png))
        return unpacked(facts["arrays"], body), pixels


def digest(png: bytes) -> str:
    with Image.open(io.BytesIO(png)) as image:
        return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()[:16]


@contextmanager
def stored_runs(output: Path, *flags: str) -> Iterator[StoredRuns]:
    """A real server that has loaded the stored runs."""
    with tensorboard(FORMAT_1, output, *flags) as server:
        runs = StoredRuns(server.address)

        def is_loaded() -> bool:
            if sorted(one["run"] for one in runs.tab("runs")["runs"]) != RUNS:
                return False
            if not runs.tab("patches", run="training")["series"]:
                return False  # in the second file of the run
            return all(
                [layer["label"] for layer in runs.layers(run)] == LAYERS[run]
                and runs.layers(run)[0]["steps"][-1] == STEPS[run][-1]
                for run in RUNS
            )

        wait_for("the stored runs", LOAD_LIMIT, is_loaded)
        yield runs


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast", "python"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoredRuns]:
    output = tmp_path_factory.mktemp("server") / "output"
    with stored_runs(output, f"--load_fast={request.param}") as started:
        yield started


@pytest.mark.parametrize("plugin", ["images", "histograms", "scalars", "text"])
@pytest.mark.parametrize("run", RUNS)
def test_every_stored_series_is_listed_with_all_of_its_steps(
    server: StoredRuns, run: str, plugin: str
) -> None:
    expected = EXPECTED[run]["steps"].get(plugin, {})
    assert sorted(server.ask(f"plugin/{plugin}/tags").get(run, [])) == sorted(expected)
    for tag, steps in expected.items():
        series = server.ask(f"plugin/{plugin}/{plugin}", run=run, tag=tag, sample=0)
        assert [point[STEP_AT[plugin]] for point in series] == steps, tag


def test_the_network_is_in_the_graphs_dashboard(server: StoredRuns) -> None:
    assert server.ask("plugin/graphs/info")["training"]["run_graph"]
    assert b"block" in server.get("plugin/graphs/graph", run="training", conceptual="false")


def test_the_tab_opens_every_stored_step_of_every_layer(server: StoredRuns) -> None:
    for run in RUNS:
        for layer in server.layers(run):
            assert layer["error"] is None
            for step in layer["steps"]:
                arrays, pixels = server.maps(run, layer["key"], step)
                assert pixels, (run, layer["key"], step)
                for tag, digests in pixels.items():
                    assert digests == EXPECTED[run]["pixels"][tag][str(step)], (run, tag, step)
                if layer["label"] != "unused":
                    nan_channels = 1 if (layer["label"], step) == ("block.0", 20) else 0
                    assert np.isnan(arrays["feature_maps.mean"]).sum() == nan_channels


def test_the_tab_lists_the_stored_layers_with_what_is_known_of_them(server: StoredRuns) -> None:
    listed = {layer["label"]: layer for layer in server.layers("training")}
    all_roles = ["feature_maps", "inputs", "gradients_of_maps", "kernels"]
    assert {name: listed["refine.call2"][name] for name in (
        "key", "layer", "call", "type", "kernel_shape", "channels", "drawn", "samples", "roles",
        "activation", "steps", "steps_written",
    )} == {
        "key": "fmapboard/refine.call2", "layer": "refine", "call": 2, "type": "Conv2d",
        "kernel_shape": [5, 5, 3, 3], "channels": 5, "drawn": 5, "samples": 2,
        "roles": all_roles[:3], "activation": "relu.call2", "steps": [0, 10, 20],
        "steps_written": 3,
    }  # fmt: skip
    assert listed["stem.0"]["roles"] == all_roles
    assert (listed["unused"]["roles"], listed["unused"]["steps"]) == (["kernels"], [0, 20])
    assert [layer["name"] for layer in server.layers("sequences")] == ["critic", "critic"]
    inputs = server.tab("layers", run="training")["inputs"]
    assert [(one["sample"], one["steps"]) for one in inputs] == [(k, [0, 10, 20]) for k in (0, 1)]
    words = server.tab("layers", run="images")["step_words"]
    assert words == {"0": "image 0 (image0)", "1": "image 1 (image1)"}


def test_the_tab_has_the_health_of_stored_layers(server: StoredRuns) -> None:
    health = layers_at(*server.open("health_step", run="training", step=20))
    counts = ("nan", "channels_nonfinite", "channels_constant", "channels_dead")
    assert {key: [one[name] for name in counts] for key, one in health.items()} == {
        "fmapboard/stem.0": [0, 0, 1, 0], "fmapboard/refine": [0, 0, 0, 1],
        "fmapboard/refine.call2": [0, 0, 0, 1], "fmapboard/block.0": [16, 1, 0, 0],
        "fmapboard/unused": [None] * 4,
    }  # fmt: skip
    unused = health["fmapboard/unused"]
    assert (unused["change"], unused["weights_unchanged_since"]) == (None, None)
    facts, body = server.open("health", run="training")
    arrays = unpacked(facts["arrays"], body)
    rows = [row["label"] for row in facts["layers"]]
    assert rows == [
        "stem.0", "stem.1", "refine", "relu", "refine.call2", "relu.call2", "block.0", "block.1",
    ]  # fmt: skip
    assert (facts["steps"], facts["written"], facts["errors"]) == ([0, 10, 20], 3, {})
    assert arrays["dead"][:, rows.index("refine")] == pytest.approx([0.2] * 3)
    assert facts["since"]["nonfinite"]["6"] == 20
    assert facts["first_nonfinite"]["step"] == 20
    assert facts["first_nonfinite"]["label"] == "block.0"


def test_the_tab_has_the_findings_of_the_stored_run(server: StoredRuns) -> None:
    answer = server.tab("findings", run="training")
    first = answer["findings"][0]
    assert (first["kind"], first["class"], first["since"]) == ("nonfinite", "warning", 20)
    assert "`block.0`" in first["message"]
    assert "The fault is in the weights: `block.0.weight` is not finite" in first["explanation"]
    assert [one["class"] for one in answer["findings"]].count("warning") == 1
    assert server.tab("findings", run="sequences")["findings"] == []


def test_the_tab_has_the_history_and_the_charts_of_stored_layers(server: StoredRuns) -> None:
    key = "fmapboard/stem.0"
    facts, body = server.open("history", run="training", key=key)
    history = unpacked(facts["arrays"], body)
    assert history["feature_maps.constant"].tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0]] * 3
    assert [one["step"] for one in facts["kernels"]] == [0, 20]
    changes = history["weights.change"]
    assert np.isnan(changes[0]).all()
    assert (changes[1:, [0, 1, 3, 4]] > 0).all()
    numbers = server.tab("numbers", run="training", key="fmapboard/block.0")
    assert numbers["scalars"]["nonfinite/block.0"]["values"] == pytest.approx([0, 0, 0.25])
    assert sum(numbers["histograms"]["weights/block.0.weight"]["counts"][0]) == 180
    facts, body = server.open("history", run="sequences", key="critic.fmapboard/0")
    changes = unpacked(facts["arrays"], body)["feature_maps.change"]
    assert (changes[1, 1:] > 0).all()  # of a probe, the change of the maps is known


def test_the_tab_has_the_inputs_attributions_and_patches(server: StoredRuns) -> None:
    png = server.get(f"{TAB}input", run="training", step=20)
    assert digest(png) == EXPECTED["training"]["pixels"]["network_input/sample_0"]["20"][0]
    series = server.tab("attribution", run="training")["series"]
    assert [(one["label"], one["sample"]) for one in series] == [
        (label, sample) for label in ("stem.1", "relu.call2", "block.1") for sample in (0, 1)
    ]
    for one in series:
        assert (one["of"], one["steps"][0]) == ("loss", 0)
        assert one["gradients"][0] > 0
        query = {"run": "training", "key": one["key"], "step": 0}
        png = server.get(f"{TAB}attribution_picture", **query)
        assert digest(png) == EXPECTED["training"]["pixels"][one["key"]]["0"][0]
    (patches,) = server.tab("patches", run="training")["series"]
    facts, body = server.open(
        "layer_patches", run="training", key=patches["key"], step=patches["steps"][0]
    )
    assert (facts["header"]["searched"], facts["header"]["k"]) == (5, 2)
    arrays = unpacked(facts["arrays"], body)
    assert (arrays["value"][:, 0] >= arrays["value"][:, 1]).all()
    tag = facts["header"]["picture"]["tag"]
    assert digest(bytes_of(facts["png"], body)) == EXPECTED["training"]["pixels"][tag]["20"][0]


def test_the_stored_first_step_opens_even_if_tensorboard_dropped_it(tmp_path: Path) -> None:
    with stored_runs(tmp_path / "output", "--samples_per_plugin=images=1,feature_maps=1") as server:
        for layer in server.layers("training"):
            assert layer["steps"] == [0, 20]
            _, pixels = server.maps("training", layer["key"], 0)
            for tag, digests in pixels.items():
                assert digests == EXPECTED["training"]["pixels"][tag]["0"]
        first = server.tab("attribution", run="training")["series"][0]
        assert first["steps"] == [0, 20]


def test_check_reads_the_stored_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(["check", str(FORMAT_1), "--json"])
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["class"]) for one in found] == [("nonfinite", "warning")]


def test_a_report_holds_the_stored_runs(tmp_path: Path) -> None:
    report = write_report([FORMAT_1], tmp_path / "runs.html")
    assert sorted(report.runs) == RUNS
    assert {run: list(steps) for run, steps in zip(report.runs, report.steps, strict=True)} == STEPS
