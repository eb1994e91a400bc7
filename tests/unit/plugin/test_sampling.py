"""Steps that TensorBoard's sampling drops are reported, and the first step is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tab_client import open_tab
from two_layer_runs import log_steps

KEY = "fmapboard/0"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 logged steps."""
    root = tmp_path_factory.mktemp("long")
    log_steps(root / "run", steps=range(20))
    return root


def test_the_first_logged_step_can_be_opened_even_if_tensorboard_dropped_it(long: Path) -> None:
    sampled, whole = open_tab(long, kept=4), open_tab(long)
    layer = sampled.layer("run", KEY)
    assert len(layer["steps"]) == 5
    assert (layer["steps"][0], layer["steps"][-1]) == (0, 19)
    assert (layer["steps_written"], layer["step_from_first"]) == (20, True)
    assert whole.layer("run", KEY)["step_from_first"] is False
    first = {"run": "run", "key": KEY, "step": 0}
    facts, body = sampled.open("data/maps", **first)
    assert facts["missing"] == []
    assert (facts, body) == whole.open("data/maps", **first)


def test_history_and_overview_begin_with_the_first_logged_step(long: Path) -> None:
    tab = open_tab(long, kept=4)
    assert tab.open("data/history", run="run", key=KEY)[0]["steps"][0] == 0
    assert tab.health("run", KEY, 0)["step"] == 0


def test_the_same_steps_survive_in_records_and_pictures(long: Path) -> None:
    tab = open_tab(long, kept=4)
    for step in tab.layer("run", KEY)["steps"]:
        facts, _ = tab.open("data/maps", run="run", key=KEY, step=step)
        assert "feature_maps" not in facts["missing"], step


def test_a_dropped_step_is_not_found_and_kernels_of_other_steps_are_not_missing(long: Path) -> None:
    # Kernels are logged only at every tenth step, so other steps of that series are kept.
    tab = open_tab(long, kept=1)
    facts, _ = tab.open("data/maps", run="run", key=KEY, step=19)
    assert facts["missing"] == []
    assert tab.get("data/maps", run="run", key=KEY, step=10).status_code == 404


def test_a_run_that_was_started_again_shows_both_first_steps(tmp_path: Path) -> None:
    log_steps(tmp_path / "run", steps=range(6))
    log_steps(tmp_path / "run", steps=range(10, 16), start_step=10)
    layer = open_tab(tmp_path, kept=2).layer("run", KEY)
    assert {0, 10, 15} <= set(layer["steps"])
    assert layer["steps_written"] >= len(layer["steps"])
