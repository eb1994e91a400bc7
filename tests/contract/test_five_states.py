"""A run has one of five states, the same in every outlet, while it runs and afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checked_runs import check, why
from run_reader import read
from tab_client import open_tab
from tensorboard.util import tensor_util
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.formats.tags import SUMMARY_FILE
from fmapboard.health.rules.dead import DeadCheck

CLASSES = 4


def network() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


def images_of(labels: Tensor) -> Tensor:
    """Noise with a brightness that tells the label, [N, 3, 16, 16]."""
    return torch.randn(len(labels), 3, 16, 16) * 0.3 + labels.view(-1, 1, 1, 1) - 1.5


def unreadable(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits, labels) + 0.3 * (logits.abs() ** 1.5).mean()


def train(
    run: Path,
    *,
    loss_of: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    mixes: bool = False,
    rate: float = 0.02,
    closes: bool = True,
) -> fmapboard.FeatureMapLogger:
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    board = fmapboard.watch(model, run, optimizer=optimizer, every=6)
    for _ in range(60):
        labels = torch.randint(0, CLASSES, (32,))
        images = images_of(labels)
        if mixes:
            labels = labels[torch.randperm(32)]
        loss = loss_of(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    board.flush()
    if closes:
        board.close()
    return board


STATES = {
    "learns": ({}, True, "the loss fell from 1."),
    "does not learn": ({"mixes": True, "rate": 1e-3}, False, "the loss is 1.4"),
    "not known": ({"loss_of": unreadable}, None, "nothing found in 4 layers × 10 steps; whether"),
    "suspicion": ({"rate": 1e-7}, False, "the median update is"),
    "fault": ({"rate": 1e20}, None, ""),
}
"""State -> options of `train`, whether the run learns, the start of the first line."""


@pytest.mark.parametrize("state", STATES)
def test_every_outlet_has_the_same_state_and_line(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, learns, start = STATES[state]
    run = tmp_path / "run"
    board = train(run, **options, closes=False)  # type: ignore[arg-type]
    while_it_runs = open_tab(tmp_path).ask("data/findings", run="run")["line"]
    board.close()
    status, output, _ = why(capsys, "--json", run)
    answer = json.loads(output)
    line = answer["line"]
    assert (answer["verdict"], answer["learns"]) == (state, learns)
    assert status == (state == "fault")
    assert line.startswith(start)
    assert json.loads((run / SUMMARY_FILE).read_text()) == answer
    assert (while_it_runs["state"], while_it_runs["text"]) == (state, line)
    shown = open_tab(tmp_path).ask("data/findings", run="run")["line"]
    assert (shown["state"], shown["text"]) == (state, line)
    lines = why(capsys, run)[1].splitlines()
    assert lines[0].startswith(f"{state}: ")
    assert lines[1].endswith(line)
    newest = read(run).Tensors("fmapboard/why")[-1]
    text = tensor_util.make_ndarray(newest.tensor_proto)[()].decode()
    assert text.split("\n\n")[1] == lines[1]
    if state not in ("fault", "suspicion"):  # of these it lists what was found
        assert f"  {state}: {line}" in check(capsys, run)[1].splitlines()


def test_a_run_cut_short_has_the_state_that_was_stored_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = train(tmp_path / "run", closes=False)
    shutil.copytree(tmp_path / "run", tmp_path / "killed")
    board.close()
    assert not (tmp_path / "killed" / SUMMARY_FILE).exists()
    assert json.loads(why(capsys, "--json", tmp_path / "killed")[1])["verdict"] == "learns"


def test_a_stored_judgement_stands_whatever_the_rules_of_today_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "run")
    before = why(capsys, tmp_path / "run")

    def fails(*_: object) -> list[object]:
        raise AssertionError("judged again")

    monkeypatch.setattr(DeadCheck, "find", fails)
    assert why(capsys, tmp_path / "run") == before
    assert "failed: AssertionError" in why(capsys, "--without", "nonfinite", tmp_path / "run")[1]
