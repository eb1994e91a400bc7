"""A check that is switched off in ``watch`` says nothing in any place, and hides no other check."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import check, found, network, why
from tab_client import open_tab
from torch import nn

import fmapboard
from fmapboard.checks import BUILT_IN
from fmapboard.formats.tags import SUMMARY_FILE
from fmapboard.report.write import write_report

Images = Callable[[int], torch.Tensor]


def noise(step: int) -> torch.Tensor:
    return torch.randn(8, 3, 16, 16)


def black(step: int) -> torch.Tensor:
    return torch.zeros(8, 3, 16, 16)


def infinite_from_8_on(step: int) -> torch.Tensor:
    return noise(step) if step < 8 else noise(step) * torch.inf  # of both signs: not constant


def start(log_dir: Path, checks: Any, images: Images = noise) -> fmapboard.FeatureMapLogger:
    """Train 12 steps with a first layer that is dead from step 2 on; the logger stays open."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    board = fmapboard.watch(model, log_dir, optimizer=optimizer, every=1, checks=checks)
    for step in range(12):
        if step == 2:
            with torch.no_grad():
                model.get_parameter("0.bias").fill_(-100.0)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images(step)), torch.randint(0, 10, (8,))).backward()
        optimizer.step()
    board.flush()
    return board


def kinds_of_tab(log_dir: Path) -> list[str]:
    answer = open_tab(log_dir.parent).ask("data/findings", run=log_dir.name)
    return [line["kind"] for line in answer["findings"]]


def kinds_of_commands(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The kinds that ``fmapboard check`` finds, of which ``why`` must know the same."""
    listed = [one["kind"] for one in found(capsys, log_dir)]
    verdict = json.loads(why(capsys, "--json", log_dir)[1])
    causes = [] if verdict["cause"] is None else [verdict["cause"], *verdict["consequences"]]
    assert {one["kind"] for one in causes} <= set(listed)
    return listed


def test_by_default_the_dead_layer_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path / "run", checks=True).close()
    assert "dead" in kinds_of_tab(tmp_path / "run")
    assert "dead" in kinds_of_commands(tmp_path / "run", capsys)


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_one_check_that_is_off_is_silent_in_every_place(
    is_closed: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    run = tmp_path / "run"
    board = start(run, checks={"dead": False})
    if is_closed:
        board.close()
        assert "dead" in json.loads((run / SUMMARY_FILE).read_text())["not_checked"]
    assert "dead" not in kinds_of_tab(run)
    assert "dead" not in kinds_of_commands(run, capsys)
    assert json.loads(why(capsys, "--json", run)[1])["not_checked"]["dead"] == "switched off"
    write_report([run], tmp_path / "page.html")
    assert "dead" not in [text.split(": ")[2] for text in caplog.messages if ": step " in text]
    # who asks for it gets it
    listed = found(capsys, "--check", "fmapboard.checks:DeadCheck", run)
    assert "dead" in [one["kind"] for one in listed]
    board.close()


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_without_checks_every_place_is_silent(
    is_closed: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    run = tmp_path / "run"
    board = start(run, checks=False, images=infinite_from_8_on)
    if is_closed:
        board.close()
    tab = open_tab(tmp_path).ask("data/findings", run="run")
    assert tab["findings"] == []
    assert tab["line"]["rest"][-1] == {
        "label": "not checked",
        "text": "all checks (switched off)",
    }
    assert check(capsys, run)[1].splitlines()[-1] == "  not checked: all checks (switched off)"
    health = open_tab(tmp_path).open("data/health", run="run")[0]
    assert health["first_nonfinite"] is None
    assert kinds_of_commands(run, capsys) == []
    assert check(capsys, run)[0] == why(capsys, run)[0] == 0
    verdict = json.loads(why(capsys, "--json", run)[1])
    assert verdict["not_checked"] == {each.kind: "switched off" for each in BUILT_IN}
    assert verdict["next"] == (
        "Nothing was checked: leave out checks=False to know whether it learns."
    )
    assert not (run / SUMMARY_FILE).exists()
    assert caplog.messages == []
    board.close()


def test_a_nan_that_is_silenced_is_not_logged_in_other_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path, checks={"nonfinite": False}, images=infinite_from_8_on).close()
    assert "non-finite" not in caplog.text
    assert "nonfinite" not in caplog.text


def test_a_cause_that_is_silenced_does_not_hide_what_follows_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path / "all", checks=True, images=black).close()
    listed = kinds_of_commands(tmp_path / "all", capsys)
    assert "constant_images" in listed
    assert "same_batch" not in listed
    start(tmp_path / "silenced", checks={"constant_images": False}, images=black).close()
    assert {"dead", "same_batch"} < set(kinds_of_commands(tmp_path / "silenced", capsys))
    assert {"dead", "same_batch"} < set(kinds_of_tab(tmp_path / "silenced"))
