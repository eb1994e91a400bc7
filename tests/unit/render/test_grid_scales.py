"""Value scales of a grid: per channel, per layer, locked, signed."""

from __future__ import annotations

import pytest
import torch
from decoded_pictures import rgb_pixels
from map_grids import GREY, planes_of, tile_of
from reducers import reducer_of
from torch import nn

from fmapboard.errors import ConfigurationError
from fmapboard.records import LayerCall
from fmapboard.render.grid import draw_maps
from fmapboard.render.palettes import palette

# -- maps of one pixel ---------------------------------------------------------------------------


def test_maps_of_one_pixel_are_scaled_across_the_layer_and_never_constant() -> None:
    maps = torch.tensor([0.0, 1.0, 2.0, 4.0])[None, :, None, None]
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert raster.palette is None
    assert [int(tile_of(raster.pixels, c, maps)[0, 0]) for c in range(4)] == [0, 63, 127, 255]


# -- scales --------------------------------------------------------------------------------------


def test_the_layer_scale_keeps_the_channels_comparable() -> None:
    maps = torch.zeros(1, 4, 1, 2)
    maps[0, :, 0, 1] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    pixels = draw_maps(planes_of(maps, scale="layer"), 0, GREY).pixels
    assert [tile_of(pixels, c, maps)[0].tolist() for c in range(4)] == [
        [0, 63], [0, 127], [0, 191], [0, 255],
    ]  # fmt: skip


def test_the_locked_scale_is_that_of_the_first_step_for_each_channel() -> None:
    reducer = reducer_of(scale="locked")
    layer_call, conv = LayerCall("conv", "Conv2d"), nn.Conv2d(1, 1, 1)

    def pixels(*values: float) -> list[int]:
        maps = torch.tensor(values).reshape(1, 1, 1, -1)
        planes = reducer(layer_call, "feature_maps", maps, conv).to_host().planes
        assert planes is not None
        return draw_maps(planes, 0, GREY).pixels[0].tolist()

    assert pixels(0.0, 2.0, 4.0) == [0, 127, 255]
    assert pixels(0.0, 1.0, 2.0) == [0, 63, 127]
    assert pixels(-9.0, 4.0, 9.0) == [0, 255, 255]


def test_the_signed_palette_shows_zero_as_its_neutral_middle() -> None:
    maps = torch.tensor([[-1.0, 0.0, 4.0], [0.0, 0.5, -2.0]])[None, :, None]
    planes = planes_of(maps, zero_centered=True)
    assert planes.lo.tolist() == [[-4.0, -2.0]]
    assert planes.hi.tolist() == [[4.0, 2.0]]
    picture = rgb_pixels(draw_maps(planes, 0, palette("signed")))
    assert palette("signed").zero_centered
    for channel, column in ((0, 1), (1, 0)):
        assert tile_of(picture, channel, maps)[0, column].tolist() == [246, 247, 247]
    red, _, blue = tile_of(picture, 0, maps)[0, 2].tolist()
    assert red > blue + 60, "the largest positive value is red"
    red, _, blue = tile_of(picture, 1, maps)[0, 2].tolist()
    assert blue > red + 60, "the largest negative value is blue"


def test_an_unknown_palette_is_refused_with_the_closest_name() -> None:
    with pytest.raises(ConfigurationError, match=r"no palette 'virids'; closest: viridis; .*magma"):
        palette("virids")
