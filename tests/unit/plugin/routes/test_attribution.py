"""Attribution names the layer through which no gradient comes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tab_client import open_tab
from torch import Tensor, nn

import fmapboard


class Net(nn.Module):
    """Three convolutions with ReLUs; the second one may be skipped."""

    def __init__(self, *, skips: bool) -> None:
        super().__init__()
        self.skips = skips
        self.conv1, self.relu1 = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()
        self.conv2, self.relu2 = nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()
        self.conv3, self.relu3 = nn.Conv2d(4, 4, 3, padding=1, stride=2), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        first = self.relu1(self.conv1(x))
        second = self.relu2(self.conv2(first))
        out: Tensor = self.relu3(self.conv3(second + first if self.skips else second))
        return out.mean((2, 3))


def dead_layers(run: Path, layer: str, *, skips: bool) -> dict[str, list[str | None]]:
    """What is said of each layer at steps 0 and 1; at step 1 a layer is dead."""
    torch.manual_seed(0)
    model = Net(skips=skips)
    images = torch.rand(4, 3, 8, 8)
    with fmapboard.watch(model, run, every=1, attribution="relu*") as board:
        for step in range(2):
            if step:
                model.get_submodule(layer).bias.data.fill_(-100)
            with board.step(step):
                nn.functional.cross_entropy(model(images), torch.arange(4)).backward()
    listed = open_tab(run.parent).ask("data/attribution", run=run.name)["series"]
    return {series["label"]: series["dead"] for series in listed}


@pytest.mark.parametrize(
    ("layer", "skips", "dead"),
    [
        ("conv1", False, ["relu1", None, None]),
        ("conv2", False, ["relu2", "relu2", None]),
        ("conv3", False, ["relu3", "relu3", "relu3"]),
        ("conv2", True, [None, "relu2", None]),
    ],
)
def test_the_layer_through_which_no_gradient_comes_is_named(
    tmp_path: Path, layer: str, skips: bool, dead: list[str | None]
) -> None:
    found = dead_layers(tmp_path / "run", layer, skips=skips)
    assert found == {f"relu{number}": [None, name] for number, name in enumerate(dead, start=1)}
