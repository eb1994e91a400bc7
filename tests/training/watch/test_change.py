"""The change that the tab's records of a real training hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fmapboard
from fmapboard.formats.tab_records import unpack
from fmapboard.writers.folder import MemoryWriter

Changes = dict[tuple[int, str], tuple[dict[str, int], dict[str, list[float]]]]


class Net(nn.Module):
    """A frozen and a trained convolution, with BatchNorm and softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Conv2d(3, 6, 3)
        self.trained = nn.Conv2d(6, 40, 3)
        self.norm = nn.BatchNorm2d(40)
        self.softmax = nn.Softmax(1)
        self.frozen.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.norm(self.trained(self.frozen(x))))


def train(steps: int = 3, model: nn.Module | None = None, **options: Any) -> tuple[Any, Changes]:
    """Log steps 0, 1, …; per step and layer, the steps compared with and the changes."""
    torch.manual_seed(0)
    model, writer = model or Net(), MemoryWriter()
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.5)
    layers = [nn.Conv2d, nn.BatchNorm2d, nn.Softmax]
    with fmapboard.watch(model, writer=writer, every=1, layers=layers, **options) as board:
        for step in range(steps):
            with board.step(step):
                output = model(torch.randn(4, 3, 12, 12))
                (output * torch.linspace(0, 1, output.shape[1])[:, None, None]).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    changes: Changes = {}
    for logged in writer.steps:
        for record in logged.records:
            if record.tag.startswith(
                ("fmapboard_overview", "fmapboard_findings", "fmapboard_checks")
            ):
                continue
            header, arrays = unpack(record.blobs)
            values = {
                name.removesuffix(".change"): array.tolist()
                for name, array in arrays.items()
                if name.endswith(".change")
            }
            changes[logged.step, header["layer"]] = header.get("change_since", {}), values
    return writer, changes


def test_without_a_probe_the_change_is_that_of_the_layers_own_weights() -> None:
    model = Net()
    before = [model.trained.weight.detach().clone()]
    model.trained.weight.register_post_accumulate_grad_hook(
        lambda weight: before.append(weight.detach().clone())  # just before the optimizer steps
    )
    _, changes = train(model=model)
    assert {since.get("weights") for (step, _), (since, _) in changes.items() if step == 0} == {
        None
    }
    assert changes[2, "frozen"] == ({"weights": 1}, {"weights": [0.0] * 6})
    since, found = changes[2, "trained"]
    _, _, then, now = (weight.flatten(1) for weight in before)
    assert since == {"weights": 1}
    assert found["weights"] == pytest.approx(((now - then).norm(dim=1) / then.norm(dim=1)).tolist())
    assert len(changes[2, "norm"][1]["weights"]) == 1
    assert changes[2, "softmax"] == ({}, {})


def test_with_a_probe_maps_change_and_frozen_weights_do_not() -> None:
    _, changes = train(probe=torch.rand(2, 3, 12, 12))
    for layer in ("trained", "norm", "softmax"):
        since, found = changes[2, layer]
        assert since["feature_maps"] == 1
        assert min(found["feature_maps"]) > 0.01
    since, found = changes[2, "frozen"]
    assert since == {"feature_maps": 1, "weights": 1}
    assert not np.any(found["feature_maps"])
    assert not np.any(found["weights"])


def test_where_a_byte_limit_shrinks_the_tiles_only_the_weights_are_compared() -> None:
    model = Net()
    nn.init.zeros_(model.trained.weight)  # the first step is small, since its maps are constant
    options = {"probe": torch.rand(8, 3, 24, 24), "kernels": False}
    writer, changes = train(4, model, max_bytes_per_step=200_000, **options)
    blocks = []
    for step in writer.steps:
        record = next(r for r in step.records if r.tag == "fmapboard/trained")
        blocks.append(unpack(record.blobs)[0]["pictures"][0]["block"])
    assert blocks[0] < blocks[1] == blocks[2]
    since, found = changes[1, "trained"]
    assert since == {"weights": 0}
    assert float("inf") in found["weights"]
    assert changes[2, "trained"][0] == {"feature_maps": 1, "weights": 1}
    assert changes[2, "frozen"][1]["weights"] == [0.0] * 6
