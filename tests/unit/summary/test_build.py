"""From measurements to what is written: tags, descriptions, numbers and tab records."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from fmapboard.measure.reducer import Reducer
from fmapboard.records import (
    InputImage,
    Kernels,
    KernelShape,
    LoggedStep,
    Measured,
    Parameter,
    Planes,
    Sample,
    Site,
    StepData,
)
from fmapboard.render import png
from fmapboard.summary.build import Composer
from fmapboard.tab_format import unpack

CONV = nn.Conv2d(3, 64, 7)
SITE = Site("conv1", "Conv2d", KernelShape((64, 3, 7, 7)))
LEGEND = "magenta = NaN, red = +Inf, blue = −Inf, cyan = constant channel, orange = dead channel"


def measured(
    maps: torch.Tensor, site: Site = SITE, role: Any = "feature_maps", **options: Any
) -> Measured:
    return Reducer(**options)(site, role, maps, CONV).to_host()


def maps_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def compose(composer: Composer | None = None, step: int = 0, **content: Any) -> LoggedStep:
    return (composer or Composer())(StepData(step, 1000.0, **content))


def kernels_of(*shape: int, site: Site | None = None) -> Kernels:
    weight = np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)
    return Kernels(site or Site("conv1", "Conv2d", KernelShape(shape)), weight)


# -- tags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "role", "tag"),
    [
        (SITE, "feature_maps", "feature_maps_64x3x7x7/conv1"),
        (SITE, "inputs", "inputs_64x3x7x7/conv1"),
        (SITE, "gradients_of_maps", "gradients_of_maps_64x3x7x7/conv1"),
        (Site("head.conv", "Conv2d", KernelShape((8, 4, 1, 1)), call=2), "feature_maps",
         "feature_maps_8x4x1x1/head.conv.call2"),
        (Site("up", "ConvTranspose2d", KernelShape((8, 4, 2, 2))), "feature_maps",
         "feature_maps_8x4x2x2/up"),
        (Site("pool", "MaxPool2d"), "feature_maps", "feature_maps_MaxPool2d/pool"),
    ],
)  # fmt: skip
def test_pictures_are_grouped_by_kernel_shape_and_role(site: Site, role: Any, tag: str) -> None:
    (picture,) = compose(measured=(measured(maps_of(1, 4, 6, 6), site, role),)).pictures
    assert picture.tag == tag
    assert picture.role == role
    assert picture.site is site


def test_kernels_and_the_networks_input_have_tags_of_their_own() -> None:
    photograph = InputImage(1, np.zeros((3, 4, 5), np.float32))
    step = compose(kernels=(kernels_of(64, 3, 7, 7),), inputs=(photograph,))
    assert [p.tag for p in step.pictures] == ["kernels_64x3x7x7/conv1", "network_input/sample_1"]


def test_histograms_and_scalars_are_tagged_by_what_they_count() -> None:
    sample = Sample(np.array([0.0, 1.0], np.float32), 2)
    parameters = (Parameter("conv1.weight", sample, sample, 3.0), Parameter("conv1.bias", norm=4.0))
    roles = ("feature_maps", "inputs", "gradients_of_maps")
    step = compose(
        measured=tuple(measured(maps_of(2, 4, 6, 6), role=role) for role in roles),
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


def test_a_name_stands_in_front_of_every_tag() -> None:
    step = compose(
        Composer(name="critic"),
        measured=(measured(maps_of(1, 4, 6, 6)),),
        kernels=(kernels_of(64, 3, 7, 7),),
        inputs=(InputImage(0, np.zeros((3, 4, 5), np.float32)),),
        parameters=(Parameter("conv1.weight", norm=3.0),),
    )
    tags = [*step.scalars, *(x.tag for x in (*step.pictures, *step.histograms, *step.records))]
    assert len(tags) == 11
    assert all(tag.startswith("critic.") for tag in tags)
    assert "critic.fmapboard/conv1" in tags
    (record, _) = step.records
    assert unpack(record.blobs)[0]["pictures"][0]["tag"] == "critic.feature_maps_64x3x7x7/conv1"


# -- numbers -------------------------------------------------------------------------------------


def test_fractions_are_of_the_layers_channels() -> None:
    maps = maps_of(2, 4, 6, 6)
    maps[:, 0], maps[:, 1], maps[1, 2, 0, 0] = 0.0, 7.0, math.nan
    relu = Site("relu", "ReLU", pictures=False, floor=0.0)
    scalars = compose(measured=(measured(maps), measured(maps, relu))).scalars
    assert scalars["constant_channels/conv1"] == 0.5
    assert scalars["nonfinite/conv1"] == 0.25
    assert "dead_channels/conv1" not in scalars
    assert scalars["dead_channels/relu"] == 0.25


def test_only_layers_with_pictures_get_a_record_and_a_histogram() -> None:
    relu = Site("relu", "ReLU", pictures=False, floor=0.0)
    step = compose(measured=(measured(maps_of(1, 4, 6, 6), relu),))
    assert (step.pictures, step.histograms, step.records) == ((), (), ())


def test_no_gradient_gives_no_norm() -> None:
    assert "gradient_norm/total" not in compose(parameters=(Parameter("a"),)).scalars


# -- descriptions --------------------------------------------------------------------------------


def description(maps: torch.Tensor, composer: Composer | None = None, **options: Any) -> str:
    (picture,) = compose(composer, measured=(measured(maps, **options),)).pictures
    return picture.description


def test_a_description_says_what_is_drawn_and_what_the_colours_mean() -> None:
    assert description(maps_of(2, 9, 6, 7)) == (
        "feature maps of `conv1` (Conv2d), shape [2, 9, 6, 7], channels 0…8, 3 in a row; "
        f"each channel scaled between its own extremes; {LEGEND}"
    )


def test_a_description_says_what_was_left_out() -> None:
    said = description(maps_of(1, 100, 130, 66))
    assert "shape [1, 100, 130, 66], channels 0…63, 8 in a row" in said
    assert "; 36 of 100 channels left out; " in said
    assert "; averaged down: a pixel is the mean of 3×3, a tile 44×22; " in said


def test_a_description_says_the_scale() -> None:
    maps = maps_of(1, 4, 5, 5)
    assert "; one scale for all channels of the layer; " in description(
        maps, Composer(scale="layer"), scale="layer"
    )
    assert "; scale locked to the first logged step; " in description(
        maps, Composer(scale="locked"), scale="locked"
    )


def test_a_description_says_how_other_shapes_were_read() -> None:
    sequence = Reducer()(SITE, "feature_maps", maps_of(1, 4, 9), nn.Conv1d(3, 4, 1)).to_host()
    assert "; one axis, drawn as a line; " in compose(measured=(sequence,)).pictures[0].description


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((8, 3, 5, 5), "kernels of `conv1` (Conv2d): RGB, grey is 0; one scale for the layer"),
        ((8, 4, 5, 5), "kernels of `conv1` (Conv2d): a row an input, a column an output; "
         "one scale for the layer"),
        ((8, 200, 1, 1), "kernels of `conv1` (Conv2d): a row an input, a column an output; "
         "one scale for the layer; at most 64 outputs and inputs of 8x200x1x1"),
        ((96, 3, 5, 5), "kernels of `conv1` (Conv2d): RGB, grey is 0; one scale for the layer; "
         "at most 64 outputs of 96x3x5x5"),
    ],
)  # fmt: skip
def test_a_description_of_kernels_says_how_they_lie_and_what_was_left_out(
    shape: tuple[int, ...], text: str
) -> None:
    (picture,) = compose(kernels=(kernels_of(*shape),)).pictures
    assert picture.description == text


def test_three_inputs_are_never_left_out_and_not_said_to_be() -> None:
    (picture,) = compose(Composer(max_kernels=2), kernels=(kernels_of(2, 3, 5, 5),)).pictures
    assert picture.description.endswith("one scale for the layer")


def test_a_layers_name_cannot_break_out_of_the_descriptions_code_quotes() -> None:
    site = Site("a`b\n# c", "Conv2d", KernelShape((4, 3, 1, 1)))
    (picture,) = compose(measured=(measured(maps_of(1, 4, 5, 5), site),)).pictures
    assert picture.description.startswith("feature maps of `a'b # c` (Conv2d)")


# -- pictures ------------------------------------------------------------------------------------


def test_each_sample_is_a_raster_of_its_own() -> None:
    (picture,) = compose(measured=(measured(maps_of(5, 4, 6, 6), samples=3),)).pictures
    assert [r.pixels.shape for r in picture.rasters] == [(18, 18)] * 3


def test_a_dead_activations_channel_is_drawn_as_dead() -> None:
    maps = maps_of(2, 4, 6, 6).relu()
    maps[:, 1] = 0
    site = Site("relu", "ReLU", floor=0.0)
    step = compose(measured=(measured(maps, site),))
    ((raster,),) = [p.rasters for p in step.pictures]
    assert raster.pixels[2, 10] == 255
    _, arrays = unpack(step.records[0].blobs)
    assert arrays["feature_maps.dead"].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_colour_palette_is_used_and_named() -> None:
    step = compose(Composer(colormap="magma"), measured=(measured(maps_of(1, 4, 6, 6)),))
    assert step.pictures[0].rasters[0].palette is not None
    assert unpack(step.records[0].blobs)[0]["pictures"][0]["palette"] == "magma"


# -- records of the tab --------------------------------------------------------------------------


def test_the_first_steps_record_carries_the_grids_and_later_ones_do_not() -> None:
    composer = Composer()
    content: dict[str, Any] = {
        "measured": (measured(maps_of(2, 9, 6, 6), samples=2),),
        "kernels": (kernels_of(64, 3, 7, 7),),
    }
    first = compose(composer, **content)
    later = compose(composer, 10, measured=content["measured"])
    assert [r.tag for r in first.records] == ["fmapboard/conv1", "fmapboard_first/conv1"]
    assert [r.tag for r in later.records] == ["fmapboard/conv1"]
    small, whole = first.records
    assert len(small.blobs) == 2
    assert whole.blobs[:2] == small.blobs
    drawn = [png.encode(raster) for p in first.pictures for raster in p.rasters]
    assert list(whole.blobs[2:]) == drawn
    with Image.open(io.BytesIO(whole.blobs[4])) as image:
        assert image.size == (65, 65)


def test_a_record_tells_the_step_and_how_many_were_written_so_far() -> None:
    composer, part = Composer(), measured(maps_of(1, 4, 6, 6))
    told = []
    for number in (0, 100, 200):
        step = compose(composer, number, measured=(part,), training_thread_ms=2.34567)
        header, _ = unpack(step.records[0].blobs)
        told.append((header["step"], header["steps_written"], header["training_thread_ms"]))
    assert told == [(0, 1, 2.346), (100, 2, 2.346), (200, 3, 2.346)]


def test_a_record_holds_the_geometry_and_the_numbers_of_the_drawn_channels() -> None:
    maps = maps_of(3, 70, 130, 66)
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


def test_every_call_and_every_layer_has_a_record_of_its_own() -> None:
    sites = (
        SITE,
        Site("conv1", "Conv2d", SITE.kernel_shape, 2, 1),
        Site("b", "Conv2d", None, 1, 2),
    )
    step = compose(measured=tuple(measured(maps_of(1, 4, 6, 6), site) for site in sites))
    small = [r for r in step.records if r.tag.startswith("fmapboard/")]
    assert [r.tag for r in small] == ["fmapboard/conv1", "fmapboard/conv1.call2", "fmapboard/b"]
    headers = [unpack(r.blobs)[0] for r in small]
    assert [(h["call"], h["position"]) for h in headers] == [(1, 0), (2, 1), (1, 2)]


def test_a_record_tells_which_channels_the_next_activation_shuts_off() -> None:
    maps = maps_of(2, 4, 6, 6)
    maps[:, 1] = -1.0
    relu = Site("relu", "ReLU", None, 1, 1, pictures=False, floor=0.0)
    after = measured(maps.clamp(min=0.0), relu)
    second = measured(torch.zeros(2, 4, 6, 6), replace(relu, layer="relu2", position=2))
    other = measured(maps_of(2, 4, 6, 6), Site("conv2", "Conv2d", None, 1, 3))
    step = compose(measured=(measured(maps), after, second, other))
    header, arrays = unpack(step.records[0].blobs)
    assert header["activation"] == {"label": "relu", "type": "ReLU"}
    assert arrays["activation.dead"].tolist() == [0, 1, 0, 0]
    later = next(r for r in step.records if r.tag == "fmapboard/conv2")
    assert "activation" not in unpack(later.blobs)[0]


def test_an_activation_of_another_number_of_channels_says_nothing_about_a_layer() -> None:
    relu = Site("relu", "ReLU", None, 1, 1, pictures=False, floor=0.0)
    parts = (measured(maps_of(2, 4, 6, 6)), measured(torch.zeros(2, 8, 6, 6), relu))
    header, arrays = unpack(compose(measured=parts).records[0].blobs)
    assert "activation" not in header
    assert "activation.dead" not in arrays


def test_kernels_tell_the_value_of_their_strongest_colour() -> None:
    kernels = kernels_of(64, 3, 7, 7)
    header, arrays = unpack(compose(kernels=(kernels,)).records[0].blobs)
    assert header["pictures"] == [
        {"role": "kernels", "tag": "kernels_64x3x7x7/conv1", "peak": 1.0, "palette": "rgb",
         "padding": 1}
    ]  # fmt: skip
    assert arrays == {}


def test_values_of_a_float64_model_beyond_float32_are_no_error() -> None:
    maps = maps_of(1, 4, 6, 6).double() * 1e200
    header, arrays = unpack(compose(measured=(measured(maps),)).records[0].blobs)
    assert np.isinf(arrays["feature_maps.hi"]).all()
    assert header["layer"] == "conv1"


def test_planes_of_a_probe_stand_beside_numbers_of_the_batch() -> None:
    live, probe = measured(maps_of(8, 4, 6, 6)), measured(maps_of(2, 4, 6, 6), samples=None)
    joined = Measured(SITE, "feature_maps", probe.planes, live.statistics, live.sample)
    step = compose(measured=(joined,))
    assert len(step.pictures[0].rasters) == 2
    assert isinstance(joined.planes, Planes)
    assert step.histograms[0].counts.sum() == 8 * 4 * 36
