"""``data/difference``: how much layers differ, by their maps or by the statistics of the batch."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from column_runs import AGAIN, BASE, RENAMED, SHORT, network
from compared_runs import IMAGES
from tab_client import Tab, open_tab
from two_layer_runs import log_steps, two_layers

import fmapboard
from fmapboard.plugin.picture_values import map_values
from fmapboard.plugin.routes.difference import LayerDifference, _Measured, _with_measure
from fmapboard.records import Picture
from fmapboard.render.png import encode

FIRST, SECOND = "fmapboard/first", "fmapboard/second"
GROWN = 0.1 / math.sqrt((1 + 1.1**2) / 2)
"""Relative difference of maps, all of which are 10 % larger on the other side."""


@pytest.fixture(scope="module")
def tab(column_runs: Path) -> Tab:
    return open_tab(column_runs)


def compare(tab: Tab, key: str, other_key: str, **sides: object) -> dict[str, Any]:
    query = {"run": BASE, "step": 0, "other_run": BASE, "other_step": 0, **sides}
    (found,) = tab.ask("data/difference", key=key, other_key=other_key, **query)["layers"]
    assert (found["key"], found["other_key"]) == (key, other_key)
    return dict(found)


def test_maps_of_one_input_image_are_compared(tab: Tab) -> None:
    found = compare(tab, FIRST, FIRST, other_step=10)
    assert (found["measure"], found["inputs"]) == ("maps", "same")
    assert found["value"] == pytest.approx(GROWN, abs=3 * found["rounding"])
    assert 0 < found["rounding"] < 0.01
    assert (found["step"], found["other_step"], found["nonfinite"]) == (0, 10, 0)


def test_the_ratio_of_the_magnitudes_is_given_for_both_measures(tab: Tab) -> None:
    found = compare(tab, FIRST, FIRST, other_step=10)
    assert found["ratio"] == pytest.approx(1.1, rel=1e-2)  # 10 % larger, rounded to 8 bits
    back = compare(tab, FIRST, FIRST, step=10)
    assert back["ratio"] == pytest.approx(1 / found["ratio"])
    statistics = compare(tab, FIRST, "fmapboard/conv1", other_run=RENAMED, other_step=10)
    assert statistics["ratio"] == pytest.approx(1.1, rel=1e-3)


def test_the_ratio_to_maps_of_zeros_is_infinite(tmp_path: Path) -> None:
    for run in ("a", "b"):
        model = two_layers()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.0 if run == "a" else 0.5)
        with fmapboard.watch(model, tmp_path / run, every=1) as board, board.step(0):
            model(torch.ones(1, 1, 8, 8))
    tab = open_tab(tmp_path)

    def ratio(run: str, other: str) -> Any:
        sides = {"run": run, "step": 0, "other_run": other, "other_step": 0}
        found = compare(tab, "fmapboard/0", "fmapboard/0", **sides)
        return found["ratio"], found["group"]

    assert ratio("a", "b") == ("Infinity", "size")
    assert ratio("b", "a") == (0, "size")
    assert ratio("a", "a") == (None, "maps")


@pytest.mark.parametrize(
    ("measured", "group"),
    [
        pytest.param({}, "maps", id="comparable"),
        pytest.param({"ratio": 9.9}, "maps", id="somewhat larger"),
        pytest.param({"ratio": 10.0}, "size", id="ten times larger"),
        pytest.param({"ratio": 0.1}, "size", id="ten times smaller"),
        pytest.param({"ratio": 50.0, "nonfinite": 0.2}, "nonfinite", id="not finite"),
    ],
)
def test_the_answer_says_by_which_number_a_layer_is_ranked(
    measured: dict[str, Any], group: str
) -> None:
    plain = {"value": 1.0, "rounding": 0.1, "ratio": 1.0, "nonfinite": 0.0}
    found = _with_measure(_pair(), "maps", _Measured(**{**plain, **measured}))
    assert (found.group, found.measure, _pair().group) == (group, "maps", "none")


@pytest.mark.parametrize(
    ("gain", "shift", "scale"),
    [
        pytest.param(1.5, 0.0, "first", id="somewhat larger"),
        pytest.param(0.5, 0.0, "first", id="smaller"),
        pytest.param(3.0, 0.0, "own", id="mostly clipped"),
        pytest.param(0.01, 0.0, "own", id="flat"),
        pytest.param(0.07, 0.0, "own", id="nearly flat"),
        pytest.param(1.0, 1e4, "own", id="elsewhere"),
    ],
)
def test_maps_that_cannot_be_read_on_the_scale_of_the_first_side_get_their_own(
    tmp_path: Path, gain: float, shift: float, scale: str
) -> None:
    for run in ("a", "b"):
        model = two_layers()
        with torch.no_grad():
            first: Any = model[0]
            first.bias.zero_()
            if run == "b":
                first.weight *= gain
                first.bias += shift
        with fmapboard.watch(model, tmp_path / run, every=1) as board, board.step(0):
            model(torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8))
    tab = open_tab(tmp_path)
    sides = {"run": "a", "step": 0, "other_run": "b", "other_step": 0}
    assert compare(tab, "fmapboard/0", "fmapboard/0", **sides)["scale"] == scale
    same = {"run": "a", "step": 0, "other_run": "a", "other_step": 0}
    assert compare(tab, "fmapboard/0", "fmapboard/0", **same)["scale"] == "first"


def _pair() -> LayerDifference:
    nothing = dict.fromkeys([field.name for field in fields(LayerDifference)])
    return LayerDifference(**{**nothing, "group": "none"})  # type: ignore[arg-type]


def test_a_difference_is_that_of_the_true_maps(tab: Tab) -> None:
    with torch.no_grad():
        a, b = (network(("first", "second"), seed)[0](IMAGES[1:2]).double() for seed in (0, 1))
    true = float((a - b).square().mean().sqrt() / ((a.square() + b.square()).mean() / 2).sqrt())
    found = compare(tab, FIRST, FIRST, other_run=AGAIN, sample=1, other_sample=1)
    assert found["value"] == pytest.approx(true, abs=2 * found["rounding"])
    same = compare(tab, FIRST, FIRST)
    assert same["value"] == 0


def test_statistics_are_compared_if_the_input_images_differ(tab: Tab) -> None:
    found = compare(tab, FIRST, "fmapboard/conv1", other_run=RENAMED, other_step=10)
    assert (found["measure"], found["inputs"]) == ("statistics", "different")
    # The batch holds the same images in another order, so only the growth differs.
    assert found["value"] == pytest.approx(GROWN, rel=1e-3)
    assert found["rounding"] is None
    assert compare(tab, FIRST, FIRST, other_sample=1)["inputs"] == "different"


def test_the_step_of_a_layer_is_the_last_one_that_is_kept(tab: Tab) -> None:
    found = compare(tab, FIRST, "fmapboard/conv1", step=25, other_run=RENAMED, other_step=25)
    assert (found["step"], found["other_step"]) == (20, 10)


def test_several_layers_are_compared_in_the_requested_order(tab: Tab) -> None:
    query = {"run": BASE, "step": 0, "other_run": SHORT, "other_step": 0}
    pairs = [("key", SECOND), ("key", FIRST), ("other_key", SECOND), ("other_key", FIRST)]
    answer = tab.client.get(
        "/data/plugin/feature_maps/data/difference", query_string=[*query.items(), *pairs]
    )
    second, first = answer.json["layers"]
    assert second["why"] == f"no layer {SECOND!r} in run {SHORT!r}"
    assert (second["value"], second["measure"], first["measure"]) == (None, None, "maps")


def test_values_that_are_not_finite_are_left_out_and_counted(tmp_path: Path) -> None:
    log_steps(tmp_path / "a", steps=[0])
    log_steps(tmp_path / "b", steps=[0])
    query = {"run": "a", "step": 0, "other_run": "b", "other_step": 0}
    tab = open_tab(tmp_path)
    (found,) = tab.ask("data/difference", key="fmapboard/0", other_key="fmapboard/0", **query)[
        "layers"
    ]
    # One of the five channels is NaN.
    assert (found["nonfinite"], found["value"]) == (pytest.approx(0.2), 0)


def test_layers_of_different_sizes_are_not_compared_by_their_maps(tmp_path: Path) -> None:
    for run, size in (("a", 8), ("b", 4)):
        model = two_layers()
        with fmapboard.watch(model, tmp_path / run, every=1) as board, board.step(0):
            model(torch.ones(1, 1, size, size))
    query = {"run": "a", "step": 0, "other_run": "b", "other_step": 0, "key": "fmapboard/0"}
    found = open_tab(tmp_path).ask("data/difference", other_key="fmapboard/0", **query)
    assert found["layers"][0]["measure"] == "statistics"


PICTURE = {"tile": [2, 3], "drawn": 2, "columns": 1, "padding": 1}
PIXELS = np.arange(7 * 5, dtype=np.uint8).reshape(7, 5)


def test_a_stored_picture_is_read_back_tile_by_tile() -> None:
    found = map_values(encode(Picture(PIXELS)), PICTURE, np.array([0, -1]), np.array([255, 1]))
    assert found is not None
    assert found.values[0].tolist() == [[6, 7, 8], [11, 12, 13]]
    assert found.values[1] * 255 == pytest.approx(2 * PIXELS[4:6, 1:4] - 255.0)
    assert found.unit == pytest.approx([0.5, 1 / 255])


@pytest.mark.parametrize(
    "changes",
    [
        {"tile": [2, 5]}, {"tile": [10**9, 10**9]}, {"tile": "ab"}, {"tile": 5}, {"tile": [0, 1]},
        {"drawn": 3}, {"drawn": -1}, {"drawn": None}, {"columns": 0}, {"padding": 10**9},
        {"padding": "1"},
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_its_picture_is_not_read(changes: dict[str, Any]) -> None:
    ends = np.zeros(2), np.ones(2)
    assert map_values(encode(Picture(PIXELS)), {**PICTURE, **changes}, *ends) is None


def test_a_damaged_picture_is_not_read() -> None:
    png = encode(Picture(PIXELS))
    huge = png[:16] + struct.pack(">II", 2**20, 2**20) + png[24:]
    cut = png[: len(png) // 2]
    colours = encode(Picture(np.zeros((7, 5, 3), np.uint8)))
    for bad in (b"", b"GIF89a", png[:20], cut, huge, png.replace(b"IDAT", b"iDAT"), colours):
        assert map_values(bad, PICTURE, np.zeros(2), np.ones(2)) is None


@pytest.mark.parametrize("side", [10_000, 20_000], ids=["warned", "refused"])
def test_a_second_header_does_not_make_a_picture_larger(side: int) -> None:
    png = encode(Picture(PIXELS))
    header = b"IHDR" + struct.pack(">II", side, side) + png[24:29]
    second = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    assert map_values(png[:33] + second + png[33:], PICTURE, np.zeros(2), np.ones(2)) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": ""}, "the query has no key"),
        ({"role": "kernels"}, "role must be one of feature_maps, inputs, gradients_of_maps"),
        ({"sample": -1}, "sample must not be negative"),
        ({"other_step": "x"}, "other_step must be an integer"),
    ],
)
def test_an_invalid_query_is_refused(tab: Tab, wrong: dict[str, object], said: str) -> None:
    query = {"run": BASE, "step": 0, "other_run": BASE, "other_step": 0, "key": FIRST}
    answer = tab.get("data/difference", **{**query, "other_key": FIRST, **wrong})
    assert answer.status_code == 400
    assert said in answer.json["error"]
