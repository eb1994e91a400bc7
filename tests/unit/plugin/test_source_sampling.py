"""Steps that TensorBoard's sampling drops are reported, and the first step is kept."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from tab_client import open_tab
from two_layer_runs import log_steps

import fmapboard

KEY = "fmapboard/0"
LOST_AT = 11


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
    assert layer["steps_written"] == 20
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


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 steps whose first layer is not finite from step `LOST_AT` on."""
    root = tmp_path_factory.mktemp("lost")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 3))
    images = torch.rand(40, 2, 3, 9, 9)
    with fmapboard.watch(model, root / "run", every=1) as board:
        for step in range(40):
            with torch.no_grad():
                model[0].weight[1] = math.nan if step >= LOST_AT else 0.1
            with board.step(step), torch.no_grad():
                model(images[step])
    return root


def test_the_step_at_which_a_finding_begins_is_read_from_the_files_if_it_was_dropped(
    lost: Path,
) -> None:
    sampled, whole = open_tab(lost, kept=3), open_tab(lost)
    layer = sampled.layer("run", KEY)
    assert len(layer["steps"]) == 5  # three, the first one and this one
    assert LOST_AT in layer["steps"]
    asked = {"run": "run", "key": KEY, "step": LOST_AT}
    assert sampled.open("data/maps", **asked) == whole.open("data/maps", **asked)
    picture = {"run": "run", "sample": 0, "step": LOST_AT}
    assert sampled.get("data/input", **picture).data == whole.get("data/input", **picture).data
    assert LOST_AT in sampled.open("data/history", run="run", key=KEY)[0]["steps"]
    assert LOST_AT in sampled.open("data/health", run="run")[0]["steps"]


def test_without_its_files_a_run_is_shown_at_the_steps_that_are_kept(lost: Path) -> None:
    steps = open_tab(lost, kept=3, given="gs://bucket/runs").layer("run", KEY)["steps"]
    assert len(steps) == 4
    assert LOST_AT not in steps
