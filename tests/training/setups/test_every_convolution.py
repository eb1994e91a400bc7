"""Convolutions of other classes than torch's are watched and drawn, also beside torch's."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from logged_step import pictures
from own_convolutions import Conv2d, ConvGate, ConvNeXtGRN, Experts, OtherName, Resampling, UpLayer
from torch import Tensor, nn
from torchvision.ops import DeformConv2d

import fmapboard
from fmapboard.errors import LayerNotFound
from fmapboard.formats.tab_records import unpack
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


class Deforming(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Conv2d(8, 18, 3, padding=1)
        self.deform = DeformConv2d(8, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.deform(x, self.offset(x))  # type: ignore[no-any-return]


def logged(model: nn.Module, steps: int = 2, **options: Any) -> list[LoggedStep]:
    kept, optimizer = MemoryWriter(), torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, kernels=1, **options):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.rand(2, 8, 16, 16)).square().mean().backward()
            optimizer.step()
    return kept.steps


def tags(step: LoggedStep, kind: str) -> list[str]:
    return [p.tag.partition("_")[2] for p in step.pictures if p.kind == kind]


@pytest.mark.parametrize(
    ("make", "layers"),
    [
        (lambda: nn.Sequential(nn.Conv2d(8, 4, 3), Conv2d(4, 5)), ["4x8x3x3/0", "5x4x3x3/1"]),
        (
            lambda: nn.Sequential(Resampling(8, 6), Resampling(6, 6, 0, up=True), UpLayer(6, 4)),
            ["6x8x3x3/0", "6x4x2x2/2"],
        ),
        (Deforming, ["18x8x3x3/offset", "4x8x3x3/deform"]),
    ],
    ids=["beside", "alone", "deform"],
)
def test_every_convolution_is_watched_with_its_kernel(make: Any, layers: list[str]) -> None:
    for step in logged(make(), attribution=True, activation_gradients=True):
        assert [tag.removeprefix("maps_") for tag in tags(step, "feature_maps")] == layers
        assert tags(step, "kernels") == layers
        weights = [h.tag for h in step.histograms if h.tag.startswith("weights/")]
        assert {tag.split("/")[1].split(".")[0] for tag in weights} == {
            layer.split("/")[1] for layer in layers
        }


def test_an_own_convolution_returns_what_extract_says() -> None:
    model, x = nn.Sequential(nn.Conv2d(8, 4, 3), Conv2d(4, 5)), torch.rand(2, 8, 16, 16)
    maps = fmapboard.extract(model, x)
    assert list(maps) == ["0", "1"]
    assert torch.equal(maps["1"], model(x))
    assert maps.groups == {(4, 8, 3, 3): ["0"], (5, 4, 3, 3): ["1"]}
    assert list(fmapboard.extract(model, x[0])) == ["0", "1"]
    assert fmapboard.extract_gradients(model, x, torch.sum)["1"].grad_output[0] is not None


def test_the_weight_of_experts_is_drawn_as_one_row_each() -> None:
    model = nn.Sequential(Experts(8, 5))
    expected = model[0].weight.detach().clone()
    step = logged(model)[0]
    drawn = pictures(step, "kernels_4x360/0")
    assert "a row per entry of the weight's first axis" in drawn.description
    assert "at most" not in drawn.description
    (record,) = (r for r in step.records if r.tag == "fmapboard/0")
    header = unpack(record.blobs)[0]
    (picture,) = (p for p in header["pictures"] if p["role"] == "kernels")
    assert (header["kernel_shape"], picture["outputs"], picture["inputs"]) == (
        [4, 360], [4, 4], [1, 1],
    )  # fmt: skip
    rows = drawn.samples[0].pixels[1::2, 1:-1]  # without padding
    assert rows.shape == (4, 360)
    unit = expected.numpy() / expected.abs().max().item()
    level = np.floor((unit * 0.5 + 0.5) * 255)
    assert np.corrcoef(rows.reshape(-1), level.reshape(-1))[0, 1] > 0.999


def test_the_kernels_of_an_own_transposed_layer_have_a_column_per_output() -> None:
    drawn = pictures(logged(nn.Sequential(UpLayer(8, 5)))[0], "kernels_8x5x2x2/0")
    assert drawn.samples[0].pixels.shape == (8 * 3 + 1, 5 * 3 + 1)


class GatedTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gate = nn.Conv2d(8, 4, 3), ConvGate(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.gate(self.conv(x)))  # type: ignore[no-any-return]


def test_a_dropped_module_is_not_recorded_when_it_is_called_again() -> None:
    for step in logged(GatedTwice()):
        assert [measured.layer_call.label for measured in step.statistics] == ["conv"]


@pytest.mark.parametrize("layers", [None, "*"])
def test_a_module_that_only_looks_like_a_convolution_is_dropped_in_the_first_pass(
    layers: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    model = nn.Sequential(nn.Conv2d(8, 4, 3), ConvGate(4), nn.Conv2d(4, 5, 3), ConvNeXtGRN(12))
    for step in logged(model, layers=layers, inputs=True):
        assert tags(step, "feature_maps") == ["maps_4x8x3x3/0", "maps_5x4x3x3/2"]
        assert tags(step, "kernels") == ["4x8x3x3/0", "5x4x3x3/2"]
        histograms = {h.tag for h in step.histograms}
        assert "weights/2.weight" in histograms
        assert "weights/1.weight" not in histograms
    said = [m for m in caplog.messages if "ConvGate" in m]
    (dropped,) = (m for m in said if "returned" in m)
    assert "1 (ConvGate) is not watched as a convolution: its weight has 2 output" in dropped
    assert "returned [2, 4, 14, 14]" in dropped
    assert list(fmapboard.extract(model, torch.rand(2, 8, 16, 16))) == ["0", "2"]


def test_one_that_is_named_by_the_user_is_watched_as_another_module() -> None:
    model = nn.Sequential(nn.Conv2d(8, 4, 3), ConvGate(4))
    for step in logged(model, layers="1"):
        assert tags(step, "feature_maps") == ["maps_ConvGate/1"]
        assert tags(step, "kernels") == []


def test_without_another_convolution_the_leaf_layers_are_watched_from_the_next_step_on() -> None:
    model = nn.Sequential(ConvGate(8), nn.BatchNorm2d(8))
    _, second = logged(model)
    assert tags(second, "feature_maps") == ["maps_ConvGate/0", "maps_BatchNorm2d/1"]


def test_one_beside_which_there_is_no_other_layer_is_kept() -> None:
    class ConvOuter(ConvGate):
        def __init__(self) -> None:
            super().__init__(8)
            self.act = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self.act(super().forward(x))  # type: ignore[no-any-return]

    for step in logged(nn.Sequential(ConvOuter())):
        assert "maps_ConvOuter/0" in tags(step, "feature_maps")


def test_what_is_not_watched_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    model = nn.Sequential(nn.Conv2d(8, 4, 3), OtherName(4, 4), OtherName(4, 4), ConvNeXtGRN(10))
    logged(model)
    fmapboard.extract(model, torch.rand(2, 8, 16, 16))
    (said,) = (m for m in caplog.messages if "not watched as convolutions" in m)
    assert "OtherName (1 and 1 more), ConvNeXtGRN (3)" in said


def test_a_type_of_torch_in_a_model_with_own_convolutions_only_names_those() -> None:
    said = (
        "no layer is a torch.nn.Conv2d: the model's convolutions are of the type Conv2d, UpLayer; "
        "name that class, or omit layers="
    )
    with pytest.raises(LayerNotFound, match=said):
        fmapboard.kernel_groups(nn.Sequential(Conv2d(3, 4), UpLayer(4, 4)), nn.Conv2d)


def test_the_norm_of_convnext_v2_stays_out() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ConvNextV2Config(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    with torch.device("meta"):
        model = transformers.ConvNextV2Model(config)
    names = [name for of_shape in fmapboard.kernel_groups(model).values() for name in of_shape]
    assert len(names) == 4
    assert not any("grn" in name for name in names)


def test_the_experts_of_timm_are_watched() -> None:
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        model = timm.create_model("efficientnet_cc_b0_4e")
    shapes = fmapboard.kernel_groups(model)
    kinds = {type(model.get_submodule(name)).__name__ for of in shapes.values() for name in of}
    assert "CondConv2d" in kinds
    assert len(shapes[(4, 38400)]) == 1
