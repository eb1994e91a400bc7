"""A layer of which not all channels are drawn: what is said of all, and what of the drawn ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from torch import nn

import fmapboard


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    """A layer of 80 channels, 64 of them drawn; the last one has values from -3 to 5."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 80, 1, bias=False))
    images = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8)
    images[images > 0] *= 5 / 3
    root = tmp_path_factory.mktemp("wide")
    with torch.no_grad(), fmapboard.watch(model, root / "wide", every=1) as board:
        model[0].weight.uniform_(-1, 1)
        model[0].weight[-1] = 3
        for step in (0, 1):
            with board.step(step):
                model(images)
    return serve(root)


def test_the_range_of_a_layer_is_of_all_its_channels(
    wide: str, visit: Callable[..., Person]
) -> None:
    person = visit(wide, run="wide", layer="fmapboard/0")
    person.settle()
    chart = person.see(".charts section:has(h3:has-text('Range of the layer'))")
    assert "-3 … 5" in chart.text_content().replace("−", "-")


def test_the_list_of_the_point_says_that_the_drawn_channels_are_compared(
    wide: str, visit: Callable[..., Person]
) -> None:
    person = visit(wide, run="wide", layer="fmapboard/0", pixel="0.9,0.9")
    person.settle()
    said = person.see(".pixel-measure").text_content()
    assert "Only the 64 drawn of 80 channels are compared." in said
