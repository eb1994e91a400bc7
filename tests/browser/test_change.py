"""How much layers and channels have changed, as the tab shows it, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser_visitor import Person
from tab_answers import unpacked
from tab_client import open_tab
from torch import nn

import fmapboard


class Net(nn.Module):
    """A trained convolution, a frozen one after it, and a softmax whose mean is always 1/8."""

    def __init__(self) -> None:
        super().__init__()
        self.trained = nn.Conv2d(3, 8, 3)
        self.frozen = nn.Conv2d(8, 8, 3)
        self.softmax = nn.Softmax(1)
        self.frozen.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.frozen(self.trained(x)))


def train(run: Path, **options: Any) -> None:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    layers = [nn.Conv2d, nn.Softmax]
    with fmapboard.watch(model, run, every=1, layers=layers, **options) as board:
        for step in (0, 10, 20):
            with board.step(step):
                output = model(torch.randn(4, 3, 16, 16))
                (output * torch.linspace(0, 1, 8)[:, None, None]).sum().backward()
                optimizer.step()
                optimizer.zero_grad()


@pytest.fixture(scope="module")
def logdir_of_changes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of batches, and one of a probe."""
    root = tmp_path_factory.mktemp("runs")
    train(root / "batches")
    train(root / "probe", probe=torch.rand(1, 3, 16, 16))
    return root


@pytest.fixture(scope="module")
def logged(serve: Callable[[Path], str], logdir_of_changes: Path) -> str:
    return serve(logdir_of_changes)


def badge(person: Person, layer: str) -> str:
    row = person.see(f".layer[data-layer='{layer}']")
    return str(row.locator(".badge").text_content())


def said(person: Person, layer: str) -> str:
    """The last line of what is said about a layer: its change."""
    row = person.see(f".layer[data-layer='{layer}']")
    return str(row.get_attribute("title")).splitlines()[-1]


@pytest.mark.parametrize("run", ["batches", "probe"])
def test_a_frozen_layer_says_no_change_and_a_softmax_layer_does_not(
    logged: str, visit: Callable[..., Person], run: str
) -> None:
    person = visit(logged, run=run, step=20)
    person.see(".layer .badge:text-is('no change')").wait_for()
    assert badge(person, "frozen") == "no change"
    assert "weights unchanged since step 0" in said(person, "frozen")
    assert badge(person, "trained") == badge(person, "softmax") == ""
    if run == "batches":
        assert said(person, "trained").startswith("change of the weights since step 10: ")
        assert said(person, "softmax") == "change: not recorded"
    else:
        for layer in ("trained", "softmax"):
            assert said(person, layer).startswith("change of the maps since step 10: ")
    person.see("button.flagged").click()
    person.wait("document.querySelectorAll('.tree .layer').length === 1")


def test_channels_are_sorted_by_the_mean_of_the_recorded_changes(
    logdir_of_changes: Path, logged: str, visit: Callable[..., Person]
) -> None:
    key = "fmapboard/softmax"
    facts, body = open_tab(logdir_of_changes).open("data/history", run="probe", key=key)
    changes = unpacked(facts["arrays"], body)["feature_maps.change"]  # [steps, channels]
    expected = np.argsort(-changes[1:].mean(0), kind="stable")
    assert expected.tolist() != sorted(expected)
    person = visit(logged, run="probe", layer=key, step=20, sort="change")
    person.see(".grid canvas").click(position={"x": 20, "y": 20})
    for channel in expected:
        person.see(f"h2:text-is('Channel {channel}')").wait_for()
        text = person.see(".numbers tr:has(th:text-is('Change')) td").text_content()
        value = float(text.removesuffix(" std of the maps since step 10"))
        assert value == pytest.approx(changes[2, channel], rel=0.01)
        person.press("]")
