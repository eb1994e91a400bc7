"""Descriptions of pictures: what is drawn, what was left out, what the colours and scale mean."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from composed_steps import CALL, compose, kernels_of, measured
from reduced_maps import random_maps
from torch import nn

from fmapboard.formats.tab_records import unpack
from fmapboard.measure.reducer import Reducer
from fmapboard.records import (
    KernelShape,
    LayerCall,
)
from fmapboard.summary.build import SummaryBuilder

LEGEND = "magenta = NaN, red = +Inf, blue = −Inf, cyan = constant channel, orange = dead channel"


def description(maps: torch.Tensor, composer: SummaryBuilder | None = None, **options: Any) -> str:
    (picture,) = compose(composer, measured=(measured(maps, **options),)).pictures
    return picture.description


def test_a_description_says_what_is_drawn_and_what_the_colours_mean() -> None:
    assert description(random_maps(2, 9, 6, 7)) == (
        "feature maps of `conv1` (Conv2d), shape [2, 9, 6, 7], channels 0…8, 3 per row; "
        f"each channel scaled between its own extremes; {LEGEND}"
    )


def test_a_description_says_what_was_left_out() -> None:
    said = description(random_maps(1, 100, 130, 66))
    assert "shape [1, 100, 130, 66], channels 0…63, 8 per row" in said
    assert "; 36 of 100 channels not drawn; " in said
    assert "; downscaled: each pixel is the mean of 3×3 values, tiles of 44×22 px; " in said


def test_a_description_says_the_scale() -> None:
    maps = random_maps(1, 4, 5, 5)
    assert "; one scale for all channels of the layer; " in description(
        maps, SummaryBuilder(scale="layer"), scale="layer"
    )
    assert "; scale locked to the first logged step; " in description(
        maps, SummaryBuilder(scale="locked"), scale="locked"
    )


def test_a_description_says_how_other_shapes_were_read() -> None:
    sequence = Reducer()(CALL, "feature_maps", random_maps(1, 4, 9), nn.Conv1d(3, 4, 1)).to_host()
    said = "; one row of pixels per channel, one column per position; "
    assert said in compose(measured=(sequence,)).pictures[0].description


def test_a_description_says_that_maps_of_one_pixel_are_scaled_across_the_layer() -> None:
    pixels = Reducer()(CALL, "feature_maps", torch.tensor([[0.0, 1.0, 4.0]]), nn.Linear(1, 3))
    step = compose(measured=(pixels.to_host(),))
    assert "; one scale for all channels of the layer; " in step.pictures[0].description
    header, arrays = unpack(step.records[0].blobs)
    assert header["pictures"][0]["scale"] == "layer"
    assert arrays["feature_maps.hi"].tolist() == [[4.0, 4.0, 4.0]]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((8, 3, 5, 5), "kernels of `conv1` (Conv2d): RGB, grey is 0; one scale for the layer"),
        ((8, 4, 5, 5), "kernels of `conv1` (Conv2d): a row per input, a column per output; "
         "one scale for the layer"),
        ((8, 200, 1, 1), "kernels of `conv1` (Conv2d): a row per input, a column per output; "
         "one scale for the layer; at most 64 outputs and inputs of 8x200x1x1"),
        ((96, 3, 5, 5), "kernels of `conv1` (Conv2d): RGB, grey is 0; one scale for the layer; "
         "at most 64 outputs of 96x3x5x5"),
    ],
)  # fmt: skip
def test_a_description_of_kernels_says_how_they_are_arranged_and_what_was_left_out(
    shape: tuple[int, ...], text: str
) -> None:
    (picture,) = compose(kernels=(kernels_of(*shape),)).pictures
    assert picture.description == text


def test_three_inputs_are_never_left_out_and_the_description_agrees() -> None:
    (picture,) = compose(SummaryBuilder(max_kernels=2), kernels=(kernels_of(2, 3, 5, 5),)).pictures
    assert picture.description.endswith("one scale for the layer")


def test_a_layers_name_cannot_break_out_of_the_descriptions_code_quotes() -> None:
    layer_call = LayerCall("a`b\n# c", "Conv2d", KernelShape((4, 3, 1, 1)))
    (picture,) = compose(measured=(measured(random_maps(1, 4, 5, 5), layer_call),)).pictures
    assert picture.description.startswith("feature maps of `a'b # c` (Conv2d)")
