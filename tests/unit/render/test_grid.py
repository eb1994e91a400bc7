"""Grids of feature maps equal `make_grid`'s pixels; small maps are enlarged by whole factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torchvision
from decoded_pictures import rgb_pixels
from map_grids import GREY, chelsea, classic, network, planes_of, tile_of
from reduced_maps import random_maps
from torch import nn

from fmapboard import extract
from fmapboard.records import Picture
from fmapboard.render.grid import draw_maps, enlarge

# -- equal to make_grid --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "layers"),
    [
        (torchvision.models.alexnet, 5),
        (torchvision.models.resnet18, 20),
        (torchvision.models.mobilenet_v2, 52),
    ],
    ids=["alexnet", "resnet18", "mobilenet_v2"],
)
def test_every_pixel_of_a_real_network_equals_make_grid_within_one_level(
    build: Callable[..., nn.Module], layers: int
) -> None:
    maps = extract(network(build), chelsea(160, 224))
    assert len(maps) == layers
    differing = 0
    for name, value in maps.items():
        ranges = value.amax((0, 2, 3)) - value.amin((0, 2, 3))
        assert ranges.min() >= 1e-5, f"{name}: the promise is for ranges from 1e-5 on"
        raster = draw_maps(planes_of(value), 0, GREY)
        assert raster.palette is None, f"{name}: finite maps need no palette"
        difference = raster.pixels.astype(int) - classic(value)
        assert np.abs(difference).max() <= 1, name
        differing += int(np.count_nonzero(difference))
    assert differing == 0


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7, 8, 9, 10, 63, 64, 65, 100])
@pytest.mark.parametrize("size", [(5, 9), (9, 5), (1, 4), (8, 8)])
def test_the_grid_of_any_channel_count_and_shape_equals_make_grid(
    channels: int, size: tuple[int, int]
) -> None:
    maps = random_maps(1, channels, *size, seed=channels)
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert np.array_equal(raster.pixels, classic(maps))
    assert raster.tile == size


@pytest.mark.parametrize("scale", [1.0001e-5, 1e-3, 1.0, 1e10, 1e30])
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_pixels_equal_make_grid_at_every_magnitude(scale: float, offset: float) -> None:
    maps = torch.rand(1, 6, 7, 7, generator=torch.Generator().manual_seed(1))
    maps[:, :, 0, 0], maps[:, :, 0, 1] = 0, 1
    maps = (maps + offset) * (scale if not offset else max(scale, 1e-3))
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert np.abs(raster.pixels.astype(int) - classic(maps)).max() <= 1


def test_a_palette_grid_shows_the_same_greys_within_one_level() -> None:
    maps = random_maps(1, 6, 16, 16, seed=2)
    maps[0, 5] = 0.5  # one constant channel makes the picture need marks
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert raster.palette is not None
    actual, expected = rgb_pixels(raster)[..., 0].astype(int), classic(maps).astype(int)
    for channel in range(5):
        difference = tile_of(actual, channel, maps) - tile_of(expected, channel, maps)
        assert np.abs(difference).max() == 1


def test_channels_are_arranged_in_order_from_the_upper_left() -> None:
    maps = torch.zeros(1, 9, 2, 2)
    maps[0, :, 0, 0] = torch.arange(9) / 8 + 1e-3
    raster = draw_maps(planes_of(maps, scale="layer"), 0, GREY)
    corners = [int(tile_of(raster.pixels, c, maps)[0, 0]) for c in range(9)]
    assert corners == sorted(corners)
    assert corners[0] == 0
    assert corners[8] == 255


def test_channels_with_a_range_of_a_hundred_millionth_are_still_visible() -> None:
    maps = torch.zeros(1, 4, 1, 5)
    maps[0, :] = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]) * 1e-8
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert tile_of(raster.pixels, 3, maps).tolist() == [[0, 63, 127, 191, 255]]
    assert classic(maps).max() == 0, "make_grid draws them black"


# -- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [2, 3, 4, 5])
def test_a_batch_gives_one_grey_grid_per_sample_and_never_colour(batch: int) -> None:
    maps = random_maps(batch, 6, 5, 4, seed=3)
    planes = planes_of(maps)
    samples = [draw_maps(planes, sample, GREY) for sample in range(len(planes.pixels))]
    assert len(samples) == batch
    for sample, raster in enumerate(samples):
        assert raster.pixels.ndim == 2
        assert np.array_equal(raster.pixels, classic(maps[sample : sample + 1]))


# -- enlarging -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "factor"), [(1, 32), (7, 5), (16, 2), (31, 2), (32, 1), (33, 1)])
def test_small_maps_are_enlarged_by_the_whole_factor_that_reaches_32_px(
    side: int, factor: int
) -> None:
    raster = draw_maps(planes_of(torch.rand(1, 2, side, side)), 0, GREY)
    big = enlarge(raster)
    assert big.tile == (side * factor, side * factor)
    assert np.array_equal(big.pixels, np.kron(raster.pixels, np.ones((factor, factor), np.uint8)))


def test_enlarging_keeps_palette_and_colour() -> None:
    indexed = Picture(np.array([[3, 250]], np.uint8), GREY.table, tile=(16, 16))
    assert enlarge(indexed).pixels.tolist() == [[3, 3, 250, 250], [3, 3, 250, 250]]
    assert enlarge(indexed).palette is GREY.table
    rgb = Picture(np.array([[[1, 2, 3]]], np.uint8), tile=(16, 16))
    assert enlarge(rgb).pixels.tolist() == [[[1, 2, 3]] * 2] * 2


def test_a_picture_without_tiles_is_never_enlarged() -> None:
    assert enlarge(Picture(np.zeros((4, 4), np.uint8))).pixels.shape == (4, 4)
