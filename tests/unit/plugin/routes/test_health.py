"""Health of all layers at all kept steps, from the overview series."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_providers import provider_of
from faulty_runs import INFINITE_AT, LARGE_FROM, STEPS
from tab_answers import array_of, unpacked
from tab_client import Tab, open_tab
from tensorboard.context import RequestContext
from two_layer_runs import log_steps, store_blobs

from fmapboard.formats.overview import COLUMNS, LayerFacts, OverviewStep, pack_overview
from fmapboard.health.states import CODES
from fmapboard.plugin import apps, overview_series
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.routes import health as health_route
from fmapboard.plugin.routes.health import LEVELS, UNKNOWN_LEVEL
from fmapboard.plugin.source import Reader, Source

FACTS = LayerFacts("a", "a", "Conv2d", (2, 1, 1, 1), 1, 0, 2, 4, drawn=2, roles=("feature_maps",))
TAG = "fmapboard_overview"


def health(tab: Tab, run: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    facts, body = tab.open("data/health", run=run)
    return facts, unpacked(facts["arrays"], body)


@pytest.mark.parametrize("loader", ["fast", "python"])
def test_both_loaders_give_the_health_that_was_written(faulty_runs: Path, loader: str) -> None:
    with provider_of(faulty_runs, loader) as provider:
        reader = Reader(Source(provider, in_process=True), RequestContext(), "")
        table = run_overview(reader, "faulty").health()
        with pytest.raises(Missing, match="no feature maps in run 'nope'"):
            run_overview(reader, "nope").health()
    assert (table.steps, table.written) == (tuple(STEPS), 10)
    assert [row.facts.label for row in table.rows] == ["big", "act", "act.call2", "many", "last"]
    assert [row.key for row in table.rows] == ["fmapboard/big", None, None, "fmapboard/many", None]
    assert [row.shown_at for row in table.rows] == [
        "fmapboard/big", "fmapboard/big", "fmapboard/big", "fmapboard/many", "fmapboard/many",
    ]  # fmt: skip
    assert table.since == {
        "nonfinite": {2: INFINITE_AT}, "large": {0: LARGE_FROM, 1: LARGE_FROM},
        "dead": {0: 0, 1: 0, 3: 0, 4: 0},
    }  # fmt: skip
    assert table.columns["dead"][:, 4].tolist() == [0.75] * 10  # all 80 channels, 64 are drawn
    assert table.columns["dead_lasting"][:, 4].tolist() == [0.0] * 3 + [0.75] * 7
    assert (table.columns["maximum"][:, 0] >= 1e4).tolist() == [
        step >= LARGE_FROM for step in STEPS
    ]
    assert table.first_nonfinite is not None
    assert table.first_nonfinite.step == INFINITE_AT


def test_the_first_nonfinite_value_is_told_in_the_words_of_the_verdict(faulty_runs: Path) -> None:
    facts, _ = health(open_tab(faulty_runs), "faulty")
    verdict = "NaN and +Inf since step 12, first in act (call 2)"
    assert facts["first_nonfinite"]["text"] == verdict


def test_the_answer_has_the_facts_as_json_and_the_numbers_as_float32(faulty_runs: Path) -> None:
    facts, arrays = health(open_tab(faulty_runs), "faulty")
    assert facts["layers"][3] == {
        "name": "", "label": "many", "layer": "many", "type": "Conv2d",
        "kernel_shape": [80, 6, 1, 1], "call": 1, "position": 3, "channels": 80, "values": 200,
        "drawn": 64, "samples": 1, "roles": ["feature_maps", "kernels"],
        "transposed_stride": None, "followed_by": [], "activation": "last", "key": "fmapboard/many",
        "shown_at": "fmapboard/many", "shape": "", "unit": "channel",
    }  # fmt: skip
    assert facts["since"]["nonfinite"] == {"2": INFINITE_AT}
    assert set(arrays) == {
        "minimum", "maximum", "nonfinite", "constant", "dead", "change", "weights_change",
    }  # fmt: skip
    assert {array.shape for array in arrays.values()} == {(10, 5)}
    assert arrays["nonfinite"][:, 2].tolist() == [step >= INFINITE_AT for step in STEPS]


def test_the_answer_has_a_state_and_a_brightness_per_cell(faulty_runs: Path) -> None:
    facts, body = open_tab(faulty_runs).open("data/health", run="faulty")
    codes = array_of(facts["codes"], body)
    is_infinite = codes[:, 2] == CODES.index("nonfinite")
    assert is_infinite.tolist() == [step >= INFINITE_AT for step in STEPS]
    scale = facts["shading"]
    levels = array_of(scale["levels"], body)
    assert levels.shape == codes.shape == (10, 5)
    assert set(levels.ravel().tolist()) <= {*range(LEVELS), UNKNOWN_LEVEL}
    assert (scale["lo"], scale["hi"]) == (None, None)  # each layer has a fault


def test_layers_whose_values_are_all_0_are_named(tmp_path: Path) -> None:
    values = np.zeros((2, 4), np.float32)
    numbers = {"minimum": values.copy(), "maximum": values.copy(), "nonfinite": values.copy()}
    numbers["minimum"][0, 1] = -1e-9  # at one step only
    numbers["maximum"][1, 2] = np.nan
    numbers["nonfinite"][1, 2] = 0.5
    layers = [replace(FACTS, label=name, layer=name) for name in "abcd"]
    for step in range(2):
        own = {name: array[step] for name, array in numbers.items()}
        of = OverviewStep(step, 1, tuple(layers), {**own, "counted": np.ones(4)}, {})
        store_blobs(tmp_path / "run", pack_overview(of), tag=TAG, step=step)
    facts, _ = health(open_tab(tmp_path), "run")
    assert facts["zero_rows"] == [0, 3]


def test_a_severe_layer_is_described_by_its_worst_state_and_its_dead_share(tmp_path: Path) -> None:
    least = np.zeros(5)
    most = np.array([1.0, 2e4, 2e4, 1.0, 1.0])
    shares = ([0.7, 0.0, 0.3, 0.2, 0.0], [0.75, 1.0, 0.2, 0.1, 0.0])
    layers = tuple(replace(FACTS, label=name, layer=name) for name in "abcde")
    for step, dead in enumerate(shares):
        constant = np.array([0.0, 0, 0, 0, 0.6])
        own = {"minimum": least, "maximum": most, "dead": np.array(dead), "constant": constant}
        of = OverviewStep(step, 1, layers, {**own, "counted": np.ones(5)}, {})
        store_blobs(tmp_path / "run", pack_overview(of), tag=TAG, step=step)
    facts, _ = health(open_tab(tmp_path), "run")
    said = {"0": "75 % dead", "1": "large, 100 % dead", "2": "large", "4": "60 % constant"}
    assert facts["severe"] == said


def test_the_answer_says_since_when_weights_have_been_the_same(tmp_path: Path) -> None:
    numbers = {
        "counted": np.ones(4),
        "weights_change": np.array([0, 0.5, 0, 0]),
        "weights_steps": np.array([10, 10, np.nan, 10]),  # since the step that it is compared with
    }
    layers = tuple(replace(FACTS, label=name, layer=name) for name in "abcd")
    for step in (10, 20, 30):
        of = OverviewStep(step, 1, layers, numbers, {"unchanged": {3: 5}})
        store_blobs(tmp_path / "run", pack_overview(of), tag=TAG, step=step)
    facts, _ = open_tab(tmp_path).open("data/health_step", run="run", step=30)
    assert facts["unchanged"] == {"0": 20, "3": 5}


def test_the_numbers_of_very_many_cells_are_sent_by_step(
    faulty_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = open_tab(faulty_runs)
    facts, arrays = health(tab, "faulty")
    monkeypatch.setattr(health_route, "MAX_NUMBERS", 49)
    fewer, body = tab.open("data/health", run="faulty")
    assert (fewer["arrays"], len(body)) == ({}, 2 * 50)
    for at, step in enumerate(STEPS):
        one, body = tab.open("data/health_step", run="faulty", step=step)
        numbers = unpacked(one["arrays"], body)
        assert set(arrays) < set(numbers)
        for name, values in arrays.items():
            np.testing.assert_array_equal(numbers[name], values[at])
    between, _ = tab.open("data/health_step", run="faulty", step=STEPS[1] + 1)
    assert (between["step"], set(between["steps"])) == (STEPS[1], {STEPS[1]})
    assert tab.get("data/health_step", run="nope", step=0).status_code == 404
    times = facts["wall_times"]
    kept = [tab.get("data/health_step", run="faulty", step=STEPS[1], ts=ts) for ts in times[:2]]
    assert [answer.headers["Cache-Control"].startswith("private") for answer in kept] == [
        False, True,
    ]  # fmt: skip


def test_an_answer_is_compressed_for_a_browser_that_accepts_it(
    faulty_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = open_tab(faulty_runs)
    monkeypatch.setattr(apps, "_SMALL", 1000)
    plain = tab.get("data/health", run="faulty")
    packed = tab.client.get(
        "/data/plugin/feature_maps/data/health?run=faulty", headers={"Accept-Encoding": "gzip"}
    )
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data


def test_an_answer_may_be_cached_if_the_newest_step_is_named(faulty_runs: Path) -> None:
    tab = open_tab(faulty_runs)
    newest = health(tab, "faulty")[0]["wall_times"][-1]
    lasting = [tab.get("data/health", run="faulty", ts=ts) for ts in (newest, newest - 1)]
    assert [answer.headers.get("Cache-Control") for answer in lasting] == [
        "private, max-age=3600", "no-cache, must-revalidate",
    ]  # fmt: skip


def test_a_dropped_first_step_is_restored_and_onsets_at_dropped_steps_are_exact(
    faulty_runs: Path,
) -> None:
    facts, arrays = health(open_tab(faulty_runs, kept=3), "faulty")
    restored = {0, LARGE_FROM, INFINITE_AT}
    assert restored < set(facts["steps"])
    assert len(facts["steps"]) <= 3 + len(restored)
    assert facts["steps"][-1] == STEPS[-1]
    assert facts["written"] == 10
    assert facts["since"]["large"] == {"0": LARGE_FROM, "1": LARGE_FROM}
    assert not np.isnan(arrays["minimum"][:, 0]).any()


def test_models_of_one_run_are_rows_of_one_table(tmp_path: Path) -> None:
    log_steps(tmp_path / "run", names=("gan", "critic"))
    log_steps(tmp_path / "run", names=("gan",), steps=[30], start_step=30)
    facts, arrays = health(open_tab(tmp_path), "run")
    assert [(row["name"], row["key"]) for row in facts["layers"]] == [
        ("critic", "critic.fmapboard/0"), ("critic", "critic.fmapboard/1"),
        ("gan", "gan.fmapboard/0"), ("gan", "gan.fmapboard/1"),
    ]  # fmt: skip
    assert facts["steps"] == [0, 10, 20, 30]
    assert np.isnan(arrays["maximum"][3]).tolist() == [True, True, False, False]
    assert set(facts["since"]["nonfinite"]) == {"0", "1", "2", "3"}


def test_only_new_records_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_steps(tmp_path / "run", steps=range(0, 50, 10))
    tab, reads = open_tab(tmp_path), []
    read_blob = tab.provider.read_blob

    def counted(ctx: Any, *, blob_key: str) -> bytes:
        reads.append(blob_key)
        return read_blob(ctx, blob_key=blob_key)

    monkeypatch.setattr(tab.provider, "read_blob", counted)
    before = health(tab, "run")[1]
    assert len(reads) == 17  # header, numbers and layers of five steps, first NaN, checks
    tab.ask("data/layers", run="run")
    tab.open("data/health_step", run="run", step=30)
    assert len(reads) == 17
    log_steps(tmp_path / "run", steps=[50], start_step=50)
    tab.provider._multiplexer.Reload()
    monkeypatch.setattr(overview_series, "_RECENT", 0.0)
    facts, after = health(tab, "run")
    assert facts["steps"] == [0, 10, 20, 30, 40, 50]
    assert len(reads) == 17 + 3 + 1 + 1  # the new record, its first NaN and its checks
    np.testing.assert_array_equal(after["maximum"][:5], before["maximum"])


def stored_overview(run: Path, step: int, changes: Any = None) -> None:
    numbers = {"maximum": np.array([step]), "counted": np.ones(1), "missed": np.zeros(1)}
    of = OverviewStep(step, 1, (FACTS,), numbers, {})
    header, *rest = pack_overview(of)
    changed = json.dumps({**json.loads(header), **(changes or {})}).encode()
    store_blobs(run, [changed, *rest], tag=TAG, step=step)


BROKEN: dict[str, dict[str, Any]] = {
    "a newer format": {"format": 9},
    "columns that are a number": {"columns": 5},
    "one column": {"columns": ["maximum"]},
    "columns of numbers": {"columns": list(range(18))},
    "since a list": {"since": []},
    "since nothing": {"since": {"dead": {"0": None}}},
    "since of no layer": {"since": {"dead": {"0": [99]}}},
    "since of a word": {"since": {"dead": {"soon": [0]}}},
    "since long ago": {"since": {"dead": {"9" * 400: [0]}}},
    "a step in words": {"step": "first"},
    "numbers of another shape": {"arrays": [{"name": "numbers", "shape": [18, 1]}]},
    "numbers of an impossible size": {"arrays": [{"name": "numbers", "shape": [1, 2**40]}]},
    "no numbers": {"arrays": []},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_reported_and_the_other_steps_are_shown(
    tmp_path: Path, name: str
) -> None:
    stored_overview(tmp_path / "run", 0)
    stored_overview(tmp_path / "run", 1, BROKEN[name])
    tab = open_tab(tmp_path)
    facts, arrays = health(tab, "run")
    assert facts["steps"] == [0, 1]
    assert set(facts["errors"]) == {"1"}
    assert "overview" in facts["errors"]["1"] or "record" in facts["errors"]["1"]
    np.testing.assert_array_equal(arrays["maximum"][:, 0], [0, np.nan])
    assert tab.health("run", "fmapboard/a", 1)["error"] == facts["errors"]["1"]
    assert tab.health("run", "fmapboard/a", 0)["maximum"] == 0
    tab.ask("data/layers", run="run")


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_whose_only_overview_is_broken_leaves_the_others(tmp_path: Path, name: str) -> None:
    log_steps(tmp_path / "run", steps=[0])
    for tag in (TAG, f"{TAG}_first"):  # beside the valid records, of another model
        header, *rest = pack_overview(OverviewStep(0, 1, (FACTS,), {}, {}))
        broken = json.dumps({**json.loads(header), **BROKEN[name]}).encode()
        store_blobs(tmp_path / "run", [broken, *rest], tag=f"other.{tag}")
    tab = open_tab(tmp_path)
    facts, _ = health(tab, "run")
    assert [row["label"] for row in facts["layers"]] == ["0", "1"]
    assert set(facts["errors"]) == {"0"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_whose_only_overview_is_broken_says_why(tmp_path: Path, name: str) -> None:
    stored_overview(tmp_path / "run", 0, BROKEN[name])
    tab = open_tab(tmp_path)
    for route in ("health", "health_step", "findings"):
        answer = tab.get(f"data/{route}", run="run", step=0)
        assert answer.status_code == 404
        assert "the overview of run 'run' cannot be read: at step 0, the " in answer.text


def test_arbitrary_numbers_of_a_record_give_an_answer(tmp_path: Path) -> None:
    of = OverviewStep(0, 1, (FACTS,), {}, {})
    header, _, layers = pack_overview(of)
    for step, value in enumerate((np.inf, -np.inf, 3e38, -1.0, np.nan)):
        blob = np.full(len(COLUMNS), value, "<f4").tobytes()
        store_blobs(tmp_path / "run", [header, blob, layers], tag=TAG, step=step)
    tab = open_tab(tmp_path)
    tab.ask("data/layers", run="run")
    for step in range(5):
        tab.open("data/health_step", run="run", step=step)
    assert health(tab, "run")[0]["steps"] == [0, 1, 2, 3, 4]
