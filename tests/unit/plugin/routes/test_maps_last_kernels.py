"""The kernels of the last logged step are kept, also if they have hardly changed before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from run_reader import read, steps_of
from tab_client import Tab, open_tab
from torch import nn

from fmapboard import FeatureMapLogger, watch

PLACE = {"run": "run", "key": "fmapboard/0"}
LAST = 3
GROWTH = 1.01
"""Of the weights per step: 3 % in three steps, after which kernels are not drawn again."""


def log(folder: Path) -> tuple[FeatureMapLogger, list[float]]:
    """Log four steps of a convolution; the logger, and the largest weight at each step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3))
    board = watch(model, folder, every=1)
    peaks = []
    for step in range(LAST + 1):
        peaks.append(float(model[0].weight.detach().abs().max()))
        with board.step(step):
            model(torch.rand(1, 2, 8, 8)).sum().backward()
        with torch.no_grad():
            model[0].weight *= GROWTH
    return board, peaks


def kernels_at(tab: Tab, step: int) -> list[dict[str, Any]]:
    facts, _ = tab.open("data/maps", **PLACE, step=step)
    assert facts["missing"] == []
    return [each for each in facts["header"]["pictures"] if each["role"] == "kernels"]


def drawn(tab: Tab) -> list[tuple[int, float]]:
    facts, _ = tab.open("data/history", **PLACE)
    return [(each["step"], pytest.approx(each["peak"], rel=1e-5)) for each in facts["kernels"]]


@pytest.mark.parametrize("kept", [50, 1])
def test_a_closed_run_has_the_kernels_of_its_last_step(tmp_path: Path, kept: int) -> None:
    board, peaks = log(tmp_path / "run")
    board.close()
    tab = open_tab(tmp_path, kept=kept)
    (picture,) = kernels_at(tab, LAST)
    assert "step" not in picture
    assert picture["peak"] == pytest.approx(peaks[LAST], rel=1e-5)
    assert drawn(tab) == [(0, peaks[0]), (LAST, peaks[LAST])]


def test_while_a_run_goes_on_its_newest_step_shows_the_earlier_kernels(tmp_path: Path) -> None:
    board, peaks = log(tmp_path / "run")
    board.flush()
    tab = open_tab(tmp_path)
    (picture,) = kernels_at(tab, LAST)
    assert (picture["step"], picture["peak"]) == (0, pytest.approx(peaks[0], rel=1e-5))
    assert drawn(tab) == [(0, peaks[0])]
    board.close()


@pytest.mark.parametrize(("kernels", "steps"), [(True, [1, 2, 3]), (2, [])])
def test_steps_at_which_kernels_have_hardly_changed_are_told_from_those_without(
    tmp_path: Path, kernels: bool | int, steps: list[int]
) -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3))
    with watch(model, tmp_path / "run", every=1, kernels=kernels) as board:
        for step in range(LAST + 1):
            with board.step(step):
                model(torch.rand(1, 2, 8, 8)).sum().backward()
    facts, _ = open_tab(tmp_path).open("data/history", **PLACE)
    assert facts["unchanged"] == steps


def test_the_last_kernels_are_one_more_picture_of_a_layer(tmp_path: Path) -> None:
    board, _ = log(tmp_path / "run")
    board.close()
    assert steps_of(read(tmp_path / "run"), "kernels_4x2x3x3/0") == [0, LAST]
