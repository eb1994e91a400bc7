"""The answers of the tab's routes about runs that fmapboard wrote."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from read_grid import read_maps
from tab_answers import bytes_of, unpacked
from tab_client import Tab, open_tab
from torch import nn

import fmapboard
from fmapboard.health.states import CODES, MOSTLY_CONSTANT, NONFINITE
from fmapboard.records import PixelMark
from fmapboard.render.palettes import palette

KEY = "fmapboard/0"
CHANGE = ("change", "change_of", "change_since", "weights_unchanged_since")


def pictures(facts: dict[str, Any], body: bytes) -> dict[tuple[str, int], bytes]:
    """(role, sample) -> PNG."""
    return {
        (picture["role"], picture["sample"]): bytes_of(picture["png"], body)
        for picture in facts["pictures"]
    }


def test_runs_are_listed_in_natural_order_with_the_number_of_their_layers(
    tab: Tab, logdir: Path
) -> None:
    answer = tab.ask("data/runs")
    assert [(run["run"], run["layers"]) for run in answer["runs"]] == [("run2", 2), ("run10", 4)]
    assert answer["logdir"] == str(logdir)
    assert all(run["started"] > 1.7e9 for run in answer["runs"])


def test_a_layer_is_listed_with_its_shape_its_steps_and_its_roles(tab: Tab) -> None:
    layer = tab.layer("run2", KEY)
    wall_times = layer.pop("wall_times")
    assert len(wall_times) == 3
    assert wall_times == sorted(wall_times)
    following = layer.pop("activation")
    assert following in (None, "1")
    assert layer == {
        "key": "fmapboard/0", "name": "", "layer": "0", "label": "0", "call": 1, "type": "Conv2d",
        "kernel_shape": [5, 1, 1, 1], "position": 0, "channels": 5, "values": 12,
        "drawn": 5, "samples": 2, "transposed_stride": None, "followed_by": [],
        "shape": "", "unit": "channel",
        "roles": ["feature_maps", "inputs", "gradients_of_maps", "kernels"],
        "steps": [0, 10, 20], "steps_written": 3, "error": None,
    }  # fmt: skip


def test_two_models_of_one_run_are_kept_apart_by_name(tab: Tab) -> None:
    answer = tab.ask("data/layers", run="run10")
    assert [layer["key"] for layer in answer["layers"]] == [
        "critic.fmapboard/0", "critic.fmapboard/1", "gan.fmapboard/0", "gan.fmapboard/1",
    ]  # fmt: skip
    assert [layer["name"] for layer in answer["layers"]] == ["critic", "critic", "gan", "gan"]
    assert (answer["steps"], answer["steps_written"]) == ([0, 10, 20], 3)
    inputs = [(one["name"], one["sample"], one["steps"]) for one in answer["inputs"]]
    assert inputs == [(n, s, [0, 10, 20]) for n in ("critic", "gan") for s in (0, 1)]


def test_the_overview_counts_bad_channels_and_gives_the_range_of_the_rest(tab: Tab) -> None:
    health = tab.health("run2", KEY, 10)
    std = health.pop("std")
    assert health.pop("dead_known") in (True, False)  # if the writer knows which layer follows
    assert health.pop("channels_dead") in (0, 1)
    assert health == {
        "key": KEY, "step": 10, "code": NONFINITE, "minimum": -5.0, "maximum": 8.0, "mean": 2.25,
        "nan": 12, "positive_infinity": 0, "negative_infinity": 0,
        "channels_nonfinite": 1, "counted": True, "channels_constant": 1, "channels": 5,
        # The other channels did not change, but the weight of one is NaN.
        "change": "NaN", "change_of": "weights", "change_since": 0, "weights_unchanged_since": None,
    }  # fmt: skip
    # Variances 1.25, 5, 0 and 1.25 inside channels; means 2.5, 5, 5, -3.5 around 2.25.
    assert std == pytest.approx(math.sqrt(7.5 / 4 + (0.0625 + 7.5625 * 2 + 33.0625) / 4))


def test_the_overview_has_no_change_at_the_first_step(tab: Tab) -> None:
    health = tab.health("run2", KEY, 0)
    assert [health[name] for name in CHANGE] == [None] * 4


def test_dead_channels_of_an_activation_module_are_counted(tab: Tab) -> None:
    health = tab.health("run2", "fmapboard/1", 20)
    assert (health["dead_known"], health["channels_dead"]) == (True, 1)


@pytest.mark.parametrize(("asked", "shown"), [(-5, 0), (0, 0), (9, 0), (10, 10), (999, 20)])
def test_the_overview_is_that_of_the_latest_kept_step_up_to_the_requested_one(
    tab: Tab, asked: int, shown: int
) -> None:
    assert tab.health("run2", KEY, asked)["step"] == shown


def test_one_answer_holds_all_pictures_and_arrays_of_a_layer(tab: Tab) -> None:
    facts, body = tab.open("data/maps", run="run2", key=KEY, step=0)
    assert facts["header"]["kernel_shape"] == [5, 1, 1, 1]
    assert (facts["step"], facts["missing"]) == (0, [])
    numbers = unpacked(facts["arrays"], body)
    assert numbers["feature_maps.maximum"].tolist()[:3] == [3.0, 6.0, 5.0]
    drawn = pictures(facts, body)
    roles = ("inputs", "feature_maps", "gradients_of_maps")
    assert set(drawn) == {*((role, s) for role in roles for s in (0, 1)), ("kernels", 0)}
    sides = {role: Image.open(io.BytesIO(drawn[role, 1])).size for role in roles}
    assert sides == {"inputs": (2, 2), "feature_maps": (10, 14), "gradients_of_maps": (10, 14)}


def test_the_maps_come_with_the_state_of_each_channel(tab: Tab) -> None:
    facts, body = tab.open("data/maps", run="run2", key=KEY, step=10)
    numbers = unpacked(facts["arrays"], body)
    assert [CODES[int(code)] for code in numbers["feature_maps.code"]] == [
        "fine", "fine", "mostly constant", "nonfinite", "fine",
    ]  # fmt: skip


def test_values_and_marks_come_back_from_the_pictures(tab: Tab) -> None:
    facts, body = tab.open("data/maps", run="run2", key=KEY, step=20)
    numbers = unpacked(facts["arrays"], body)
    lo, hi = numbers["feature_maps.lo"][1], numbers["feature_maps.hi"][1]
    png = Image.open(io.BytesIO(pictures(facts, body)["feature_maps", 1])).convert("RGB")
    values, marks = read_maps(np.asarray(png), lo, hi, (2, 2), palette("grey"))
    assert values[0] == pytest.approx(np.array([[2.0, 3.0], [4.0, 5.0]]), abs=3 * 2 / 255)
    assert set(marks[2].flat) == {PixelMark.CONSTANT}
    assert set(marks[3].flat) == {PixelMark.NAN}


def test_kernels_are_named_missing_only_where_they_were_logged(tab: Tab) -> None:
    facts, _ = tab.open("data/maps", run="run2", key=KEY, step=10)
    assert "kernels" not in [picture["role"] for picture in facts["header"]["pictures"]]
    assert facts["missing"] == []


def test_an_answer_may_be_cached_only_if_the_request_names_its_wall_time(tab: Tab) -> None:
    time = tab.layer("run2", KEY)["wall_times"][1]
    for route, query in (("data/maps", {"step": 10}), ("data/input", {"step": 10})):
        for ts, kept in ((repr(time), True), (repr(time + 1), False), (None, False)):
            words = {**query, "run": "run2", "key": KEY, **({"ts": ts} if ts else {})}
            control = tab.get(route, **words).headers["Cache-Control"]
            assert (control == "private, max-age=3600") == kept, (route, ts, control)


def test_history_is_one_table_of_steps_and_channels_per_array(tab: Tab) -> None:
    facts, body = tab.open("data/history", run="run2", key=KEY)
    tables = unpacked(facts["arrays"], body)
    nan = float("nan")
    assert facts["steps"] == [0, 10, 20]
    assert len(facts["wall_times"]) == 3
    expected = {
        "feature_maps.mean": [
            [1.5, 3, 5, nan, -2.5], [2.5, 5, 5, nan, -3.5], [3.5, 7, 5, nan, -4.5],
        ],
        "feature_maps.lo": [[0, 0, 5, 0, -4], [1, 2, 5, 0, -5], [2, 4, 5, 0, -6]],
        "feature_maps.nonfinite": [[0, 0, 0, 12, 0]] * 3,
        "feature_maps.constant": [[0, 0, 1, 0, 0]] * 3,
        "feature_maps.code": [[1, 1, MOSTLY_CONSTANT, NONFINITE, 1]] * 3,
        "inputs.maximum": [[3], [4], [5]],
    }  # fmt: skip
    for name, table in expected.items():
        np.testing.assert_array_equal(tables[name], np.array(table, np.float32), err_msg=name)
    assert tables["gradients_of_maps.mean"].shape == (3, 5)
    assert "gradients_of_maps.dead" not in tables


def test_history_has_the_extremes_of_the_sample_that_is_asked_for(tmp_path: Path) -> None:
    model = nn.Conv2d(1, 1, 1, bias=False)
    nn.init.ones_(model.weight)
    with fmapboard.watch(model, tmp_path / "run", every=1, samples=2) as board:
        for step in (0, 1):
            with board.step(step):
                model(torch.tensor([[[[1.0, 2]]], [[[10, 30]]]]) * (step + 1))
    tab = open_tab(tmp_path)
    (key,) = [layer["key"] for layer in tab.ask("data/layers", run="run")["layers"]]
    for query, lo, hi in (
        ({}, [[1], [2]], [[2], [4]]),
        ({"sample": 0}, [[1], [2]], [[2], [4]]),
        ({"sample": 1}, [[10], [20]], [[30], [60]]),
    ):
        facts, body = tab.open("data/history", run="run", key=key, **query)
        tables = unpacked(facts["arrays"], body)
        assert tables["feature_maps.lo"].tolist() == lo
        assert tables["feature_maps.hi"].tolist() == hi
        assert tables["feature_maps.maximum"].tolist() == [[30], [60]]  # of the whole batch


def test_history_of_an_activation_module_shows_its_dead_channels(tab: Tab) -> None:
    facts, body = tab.open("data/history", run="run2", key="fmapboard/1")
    assert unpacked(facts["arrays"], body)["feature_maps.dead"].tolist() == [[0, 0, 0, 0, 1]] * 3


def test_numbers_are_those_of_the_layer_its_own_parameters_and_the_whole_model(tab: Tab) -> None:
    numbers = tab.ask("data/numbers", run="run10", key="gan.fmapboard/0")
    following = {"dead_channels/1"} & set(numbers["scalars"])
    assert set(numbers["scalars"]) - following == {
        "constant_channels/0", "nonfinite/0", "gradient_norm/total",
        "gradient_norm/0.weight", "gradient_norm/0.bias",
        "update_ratio/0.bias",
    }  # fmt: skip
    assert numbers["scalars"]["nonfinite/0"] == {"steps": [0, 10, 20], "values": [0.2] * 3}
    assert set(numbers["histograms"]) == {
        "activations/0", "inputs/0", "activation_gradients/0",
        "weights/0.weight", "weights/0.bias", "gradients/0.weight", "gradients/0.bias",
    }  # fmt: skip
    chart = numbers["histograms"]["activations/0"]
    assert chart["steps"] == [0, 10, 20]
    assert [
        len(edges) - len(counts)
        for edges, counts in zip(chart["edges"], chart["counts"], strict=True)
    ] == [1, 1, 1]
    assert (chart["edges"][0][0], chart["edges"][0][-1], sum(chart["counts"][0])) == (-4, 6, 48)


def test_numbers_of_a_layer_exclude_those_of_layers_whose_names_begin_alike(tab: Tab) -> None:
    numbers = tab.ask("data/numbers", run="run2", key="fmapboard/1")
    assert not [tag for tag in numbers["scalars"] if tag.startswith("gradient_norm/0")]
    assert "dead_channels/1" in numbers["scalars"]


def test_numbers_say_which_update_ratios_are_estimates(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.Conv2d(256, 32, 3))  # 73,728 weights
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path / "run", every=1) as board, board.step(0):
        model(torch.ones(2, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    tab = open_tab(tmp_path)
    large = tab.ask("data/numbers", run="run", key="fmapboard/1")
    assert large["estimates"] == ["update_ratio/1.weight"]
    assert {"update_ratio/1.weight", "update_ratio/1.bias"} < large["scalars"].keys()
    assert "estimates" not in tab.ask("data/numbers", run="run", key="fmapboard/0")


@pytest.mark.parametrize("kept", [50, 3])
def test_the_newest_step_has_its_kernels_whatever_is_kept_besides(
    tmp_path: Path, kept: int
) -> None:
    model = nn.Conv2d(3, 4, 3)
    with fmapboard.watch(model, tmp_path / "run", every=1) as board:
        for step in range(20):
            with board.step(step), torch.no_grad():
                model(torch.rand(1, 3, 8, 8))
                model.weight.mul_(1.1 if step < 4 else 1.0)
        board.flush()
        tab = open_tab(tmp_path, kept)
        (layer,) = tab.ask("data/layers", run="run")["layers"]
        facts, _ = tab.open("data/maps", run="run", key=layer["key"], step=19)
    roles = [picture["role"] for picture in facts["pictures"]]
    assert roles == ["feature_maps", "kernels"]
    entry = facts["header"]["pictures"][1]
    assert (entry["role"], entry["step"]) == ("kernels", 3)
    assert entry["peak"] == pytest.approx(float(model.weight.detach().abs().max()))


def test_why_marks_the_same_estimates(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.Conv2d(256, 32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path / "run", optimizer=optimizer, every=1):
        for _ in range(2):
            model(torch.ones(2, 3, 8, 8)).square().mean().backward()
            optimizer.step()
    rest = open_tab(tmp_path).ask("data/findings", run="run")["line"]["rest"]
    assert any(remark["text"].startswith("median update ≈ ") for remark in rest)


def test_the_usual_size_of_updates_is_that_of_the_checks(tab: Tab) -> None:
    numbers = tab.ask("data/numbers", run="run2", key="fmapboard/1")
    assert numbers["usual_updates"] == [1e-4, 0.04]


@pytest.mark.parametrize(("asked", "shown"), [(-1, 0), (15, 10), (20, 20), (99, 20)])
def test_the_input_is_that_of_the_latest_kept_step_up_to_the_requested_one(
    tab: Tab, asked: int, shown: int
) -> None:
    answer = tab.get("data/input", run="run10", name="gan", sample=1, step=asked)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert answer.headers["X-Step"] == str(shown)
    assert Image.open(io.BytesIO(answer.data)).size == (2, 2)


def test_a_second_request_for_a_step_reads_no_record_again(
    logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = open_tab(logdir)
    reads, read_blob = [], tab.provider.read_blob

    def counted(ctx: Any, *, blob_key: str) -> bytes:
        reads.append(blob_key)
        return read_blob(ctx, blob_key=blob_key)

    monkeypatch.setattr(tab.provider, "read_blob", counted)
    tab.open("data/health_step", run="run2", step=10)
    assert len(reads) == 11  # header, numbers and layers of three steps, first NaN, checks
    tab.open("data/health_step", run="run2", step=10)
    tab.open("data/health_step", run="run2", step=20)
    assert len(reads) == 11
