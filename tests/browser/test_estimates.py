"""Update ratios that are estimates are shown with ≈ in a real browser, exact ones without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from torch import nn

import fmapboard


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("estimates")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 256, 3), nn.Conv2d(256, 32, 3))  # 73,728 weights
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, folder / "run", every=1) as board, board.step(0):
        model(torch.rand(2, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    return serve(folder)


@pytest.mark.parametrize(("layer", "is_estimate"), [("0", False), ("1", True)])
def test_the_update_ratio_of_a_parameter_that_is_read_in_part_has_a_sign(
    address: str, visit: Callable[..., Person], layer: str, is_estimate: bool
) -> None:
    person = visit(address, width=1366, run="run", layer=f"fmapboard/{layer}")
    person.settle()
    key = person.see(".charts .value:has-text('healthy 1e−4')").last.inner_text()
    assert ("weight ≈" in key) is is_estimate
    assert "bias ≈" not in key
