"""From measurements to a logged step: tags, scalars and pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from composed_steps import CALL, compose, kernels_of, measured
from reduced_maps import random_maps

from fmapboard.formats.tab_records import unpack
from fmapboard.records import (
    InputImage,
    KernelShape,
    LayerCall,
    Parameter,
    Sample,
)
from fmapboard.summary.build import SummaryBuilder

# -- tags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer_call", "kind", "tag"),
    [
        (CALL, "feature_maps", "feature_maps_64x3x7x7/conv1"),
        (CALL, "inputs", "inputs_64x3x7x7/conv1"),
        (CALL, "gradients_of_maps", "gradients_of_maps_64x3x7x7/conv1"),
        (LayerCall("head.conv", "Conv2d", KernelShape((8, 4, 1, 1)), call=2), "feature_maps",
         "feature_maps_8x4x1x1/head.conv.call2"),
        (LayerCall("up", "ConvTranspose2d", KernelShape((8, 4, 2, 2))), "feature_maps",
         "feature_maps_8x4x2x2/up"),
        (LayerCall("pool", "MaxPool2d"), "feature_maps", "feature_maps_MaxPool2d/pool"),
    ],
)  # fmt: skip
def test_pictures_are_grouped_by_kernel_shape_and_role(
    layer_call: LayerCall, kind: Any, tag: str
) -> None:
    (picture,) = compose(measured=(measured(random_maps(1, 4, 6, 6), layer_call, kind),)).pictures
    assert picture.tag == tag
    assert picture.kind == kind
    assert picture.layer_call is layer_call


def test_kernels_and_the_networks_input_have_their_own_tags() -> None:
    image = InputImage(1, np.zeros((3, 4, 5), np.float32))
    step = compose(kernels=(kernels_of(64, 3, 7, 7),), inputs=(image,))
    assert [p.tag for p in step.pictures] == ["kernels_64x3x7x7/conv1", "network_input/sample_1"]


def test_histograms_and_scalars_are_tagged_by_what_they_describe() -> None:
    sample = Sample(np.array([0.0, 1.0], np.float32), 2)
    parameters = (Parameter("conv1.weight", sample, sample, 3.0), Parameter("conv1.bias", norm=4.0))
    roles = ("feature_maps", "inputs", "gradients_of_maps")
    step = compose(
        measured=tuple(measured(random_maps(2, 4, 6, 6), kind=kind) for kind in roles),
        parameters=parameters,
        scalars={"fmapboard/skipped_steps": 2.0},
        training_thread_ms=1.5,
    )
    assert [h.tag for h in step.histograms] == [
        "activations/conv1", "inputs/conv1", "activation_gradients/conv1",
        "weights/conv1.weight", "gradients/conv1.weight",
    ]  # fmt: skip
    assert step.scalars == {
        "gradient_norm/total": 5.0, "gradient_norm/conv1.weight": 3.0,
        "gradient_norm/conv1.bias": 4.0, "constant_channels/conv1": 0.0, "nonfinite/conv1": 0.0,
        "fmapboard/skipped_steps": 2.0, "fmapboard/logged_step_ms": 1.5,
    }  # fmt: skip


def test_every_tag_is_prefixed_with_the_name() -> None:
    step = compose(
        SummaryBuilder(name="critic"),
        measured=(measured(random_maps(1, 4, 6, 6)),),
        kernels=(kernels_of(64, 3, 7, 7),),
        inputs=(InputImage(0, np.zeros((3, 4, 5), np.float32)),),
        parameters=(Parameter("conv1.weight", norm=3.0),),
    )
    tags = [*step.scalars, *(x.tag for x in (*step.pictures, *step.histograms, *step.records))]
    assert len(tags) == 13
    assert all(tag.startswith("critic.") for tag in tags)
    assert "critic.fmapboard/conv1" in tags
    record = step.records[0]
    assert unpack(record.blobs)[0]["pictures"][0]["tag"] == "critic.feature_maps_64x3x7x7/conv1"


# -- numbers -------------------------------------------------------------------------------------


def test_fractions_are_relative_to_the_layers_channels() -> None:
    maps = random_maps(2, 4, 6, 6)
    maps[:, 0], maps[:, 1], maps[1, 2, 0, 0] = 0.0, 7.0, math.nan
    relu = LayerCall("relu", "ReLU", pictures=False, floor=0.0)
    scalars = compose(measured=(measured(maps), measured(maps, relu))).scalars
    assert scalars["constant_channels/conv1"] == 0.5
    assert scalars["nonfinite/conv1"] == 0.25
    assert "dead_channels/conv1" not in scalars
    assert scalars["dead_channels/relu"] == 0.25


def test_only_layers_with_pictures_get_a_record_and_a_histogram() -> None:
    relu = LayerCall("relu", "ReLU", pictures=False, floor=0.0)
    step = compose(measured=(measured(random_maps(1, 4, 6, 6), relu),))
    assert (step.pictures, step.histograms) == ((), ())
    assert {record.tag for record in step.records} == {
        "fmapboard_overview", "fmapboard_overview_first",
    }  # fmt: skip


def test_no_gradient_gives_no_norm() -> None:
    assert "gradient_norm/total" not in compose(parameters=(Parameter("a"),)).scalars


# -- pictures ------------------------------------------------------------------------------------


def test_each_sample_is_a_separate_picture() -> None:
    (picture,) = compose(measured=(measured(random_maps(5, 4, 6, 6), samples=3),)).pictures
    assert [r.pixels.shape for r in picture.samples] == [(18, 18)] * 3


def test_a_dead_activations_channel_is_drawn_as_dead() -> None:
    maps = random_maps(2, 4, 6, 6).relu()
    maps[:, 1] = 0
    layer_call = LayerCall("relu", "ReLU", floor=0.0)
    step = compose(measured=(measured(maps, layer_call),))
    ((raster,),) = [p.samples for p in step.pictures]
    assert raster.pixels[2, 10] == 255
    _, arrays = unpack(step.records[0].blobs)
    assert arrays["feature_maps.dead"].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_gray_is_recorded_as_grey() -> None:
    step = compose(SummaryBuilder(colormap="gray"), measured=(measured(random_maps(1, 4, 6, 6)),))
    assert unpack(step.records[0].blobs)[0]["pictures"][0]["palette"] == "grey"


def test_a_colour_palette_is_used_and_named() -> None:
    step = compose(SummaryBuilder(colormap="magma"), measured=(measured(random_maps(1, 4, 6, 6)),))
    assert step.pictures[0].samples[0].palette is not None
    assert unpack(step.records[0].blobs)[0]["pictures"][0]["palette"] == "magma"
