"""Records of the tab: grids of the first step, geometry, and numbers of the drawn channels."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from composed_steps import CALL, compose, kernels_of, measured
from PIL import Image
from reduced_maps import random_maps
from torch import nn

from fmapboard.capture.kernels import read_kernels
from fmapboard.formats.tab_records import unpack
from fmapboard.records import (
    LayerCall,
    LayerMeasurement,
    Planes,
)
from fmapboard.render import png
from fmapboard.summary.build import SummaryBuilder


def test_the_first_steps_record_carries_the_grids_and_later_ones_do_not() -> None:
    composer = SummaryBuilder()
    content: dict[str, Any] = {
        "measured": (measured(random_maps(2, 9, 6, 6), samples=2),),
        "kernels": (kernels_of(64, 3, 7, 7),),
    }
    first = compose(composer, **content)
    later = compose(composer, 10, measured=content["measured"])
    assert [r.tag for r in first.records] == [
        "fmapboard/conv1", "fmapboard_first/conv1",
        "fmapboard_overview", "fmapboard_overview_first",
    ]  # fmt: skip
    assert [r.tag for r in later.records] == ["fmapboard/conv1", "fmapboard_overview"]
    small, whole = first.records[:2]
    assert len(small.blobs) == 2
    assert whole.blobs[:2] == small.blobs
    drawn = [png.encode(picture) for p in first.pictures for picture in p.samples]
    assert list(whole.blobs[2:]) == drawn
    with Image.open(io.BytesIO(whole.blobs[4])) as image:
        assert image.size == (65, 65)


def test_a_record_holds_the_step_and_the_number_of_steps_written_so_far() -> None:
    composer, part = SummaryBuilder(), measured(random_maps(1, 4, 6, 6))
    found = []
    for number in (0, 100, 200):
        step = compose(composer, number, measured=(part,), training_thread_ms=2.34567)
        header, _ = unpack(step.records[0].blobs)
        found.append((header["step"], header["steps_written"], header["training_thread_ms"]))
    assert found == [(0, 1, 2.346), (100, 2, 2.346), (200, 3, 2.346)]


def test_a_record_holds_the_geometry_and_the_numbers_of_the_drawn_channels() -> None:
    maps = random_maps(3, 70, 130, 66)
    maps[0, 2, 0, 0] = math.inf
    header, arrays = unpack(compose(measured=(measured(maps),)).records[0].blobs)
    assert header["layer"] == "conv1"
    assert header["type"] == "Conv2d"
    assert header["kernel_shape"] == [64, 3, 7, 7]
    assert header["pictures"] == [
        {
            "role": "feature_maps", "tag": "feature_maps_64x3x7x7/conv1",
            "shape": [3, 70, 130, 66], "channels": 70, "drawn": 64, "samples": 1,
            "tile": [44, 22], "columns": 8, "padding": 2, "block": 3, "view": "",
            "palette": "grey", "scale": "channel",
        }
    ]  # fmt: skip
    assert arrays["feature_maps.lo"].shape == (1, 64)
    assert arrays["feature_maps.mean"].shape == (64,)
    assert arrays["feature_maps.mean"][5] == pytest.approx(maps[:, 5].mean().item(), abs=1e-5)
    assert arrays["feature_maps.positive_infinity"].tolist() == [0, 0, 1, *[0] * 61]
    assert "feature_maps.nan" not in arrays


def test_every_call_of_every_layer_has_its_own_record() -> None:
    layer_calls = (
        CALL,
        LayerCall("conv1", "Conv2d", CALL.kernel_shape, 2, 1),
        LayerCall("b", "Conv2d", None, 1, 2),
    )
    step = compose(
        measured=tuple(measured(random_maps(1, 4, 6, 6), layer_call) for layer_call in layer_calls)
    )
    small = [r for r in step.records if r.tag.startswith("fmapboard/")]
    assert [r.tag for r in small] == ["fmapboard/conv1", "fmapboard/conv1.call2", "fmapboard/b"]
    headers = [unpack(r.blobs)[0] for r in small]
    assert [(h["call"], h["position"]) for h in headers] == [(1, 0), (2, 1), (1, 2)]


def test_a_record_names_the_channels_that_are_dead_after_the_next_activation() -> None:
    maps = random_maps(2, 4, 6, 6)
    maps[:, 1] = -1.0
    relu = LayerCall("relu", "ReLU", None, 1, 1, pictures=False, floor=0.0)
    after = measured(maps.clamp(min=0.0), relu)
    second = measured(torch.zeros(2, 4, 6, 6), replace(relu, layer="relu2", position=2))
    other = measured(random_maps(2, 4, 6, 6), LayerCall("conv2", "Conv2d", None, 1, 3))
    step = compose(measured=(measured(maps), after, second, other))
    header, arrays = unpack(step.records[0].blobs)
    assert header["activation"] == {"label": "relu", "type": "ReLU"}
    assert arrays["activation.dead"].tolist() == [0, 1, 0, 0]
    later = next(r for r in step.records if r.tag == "fmapboard/conv2")
    assert "activation" not in unpack(later.blobs)[0]


def test_an_activation_with_another_number_of_channels_is_not_linked_to_the_layer() -> None:
    relu = LayerCall("relu", "ReLU", None, 1, 1, pictures=False, floor=0.0)
    parts = (measured(random_maps(2, 4, 6, 6)), measured(torch.zeros(2, 8, 6, 6), relu))
    header, arrays = unpack(compose(measured=parts).records[0].blobs)
    assert "activation" not in header
    assert "activation.dead" not in arrays


def test_a_record_of_kernels_holds_the_value_of_their_strongest_colour() -> None:
    kernels = kernels_of(64, 3, 7, 7)
    header, arrays = unpack(compose(kernels=(kernels,)).records[0].blobs)
    assert header["pictures"] == [
        {"role": "kernels", "tag": "kernels_64x3x7x7/conv1", "peak": 1.0, "palette": "rgb",
         "padding": 1, "tile": [7, 7], "outputs": [64, 64], "inputs": [3, 3]}
    ]  # fmt: skip
    assert arrays == {}


def test_the_value_of_the_strongest_colour_is_stored_with_the_digits_of_float32() -> None:
    kernels = kernels_of(4, 3, 7, 7)
    kernels = replace(kernels, weight=kernels.weight / 3)
    header, _ = unpack(compose(kernels=(kernels,)).records[0].blobs)
    (picture,) = header["pictures"]
    assert str(picture["peak"]) == "0.333333343"
    assert np.float32(picture["peak"]) == np.float32(1) / np.float32(3)


def test_values_of_a_float64_model_beyond_float32_raise_no_error() -> None:
    maps = random_maps(1, 4, 6, 6).double() * 1e200
    header, arrays = unpack(compose(measured=(measured(maps),)).records[0].blobs)
    assert np.isinf(arrays["feature_maps.hi"]).all()
    assert header["layer"] == "conv1"


def test_planes_of_a_probe_are_combined_with_statistics_of_the_batch() -> None:
    live, probe = measured(random_maps(8, 4, 6, 6)), measured(random_maps(2, 4, 6, 6), samples=None)
    joined = LayerMeasurement(CALL, "feature_maps", probe.planes, live.statistics, live.sample)
    step = compose(measured=(joined,))
    assert len(step.pictures[0].samples) == 2
    assert isinstance(joined.planes, Planes)
    assert step.histograms[0].counts.sum() == 8 * 4 * 36


@pytest.mark.parametrize(
    ("layer", "facts"),
    [
        (nn.Conv2d(6, 10, 3), {"outputs": [8, 10], "inputs": [6, 6]}),
        (nn.Conv2d(6, 10, 3, groups=2), {"outputs": [8, 10], "inputs": [3, 3], "groups": 2}),
        (nn.Conv1d(2, 4, 5), {"outputs": [4, 4], "inputs": [2, 2]}),
        (
            nn.ConvTranspose2d(12, 6, 4, groups=3),
            {"outputs": [2, 2], "inputs": [8, 12], "groups": 3, "transposed": True},
        ),
    ],
)
def test_a_record_of_kernels_says_how_much_of_which_axes_is_drawn(
    layer: nn.Module, facts: dict[str, Any]
) -> None:
    kernels = tuple(pending.to_host() for pending in read_kernels({"conv": layer}, 8))
    step = compose(SummaryBuilder(max_kernels=8), kernels=kernels)
    header, _ = unpack(step.records[0].blobs)
    (picture,) = header["pictures"]
    tile = [1, 5] if isinstance(layer, nn.Conv1d) else list(layer.kernel_size)
    assert picture.items() >= {**facts, "tile": tile}.items()
    assert ("transposed" in picture) == isinstance(layer, nn.ConvTranspose2d)
