"""Non-finite, constant and dead values have mark colours of their own in every palette."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decoded_pictures import rgb_pixels
from map_grids import GREY, INF, NAN, planes_of, tile_of
from reduced_maps import random_maps
from torch import Tensor

from fmapboard.records import PixelMark
from fmapboard.render.grid import draw_maps
from fmapboard.render.palettes import MARK_COLOURS, PALETTES, palette


def shown(maps: Tensor, colours: str = "grey", dead: list[bool] | None = None) -> np.ndarray:
    flags = None if dead is None else np.array(dead)
    return rgb_pixels(draw_maps(planes_of(maps), 0, palette(colours), flags))


@pytest.mark.parametrize("colours", PALETTES)
def test_nan_infinities_constant_and_dead_each_have_their_own_colour(colours: str) -> None:
    maps = torch.rand(1, 6, 4, 4, generator=torch.Generator().manual_seed(4))
    maps[0, 0, 0, 0], maps[0, 1, 1, 1], maps[0, 2, 2, 2] = NAN, INF, -INF
    maps[0, 3], maps[0, 4] = 0.25, 0.0
    picture = shown(maps, colours, dead=[False] * 4 + [True, False])
    tiles = [tile_of(picture, channel, maps) for channel in range(6)]
    assert tiles[0][0, 0].tolist() == [255, 0, 255]
    assert tiles[1][1, 1].tolist() == [255, 0, 0]
    assert tiles[2][2, 2].tolist() == [0, 0, 255]
    assert (tiles[3] == [0, 225, 225]).all()
    assert (tiles[4] == [255, 128, 0]).all()
    special = {(255, 0, 255), (255, 0, 0), (0, 0, 255), (0, 225, 225), (255, 128, 0)}
    assert not special & {tuple(p) for p in tiles[5].reshape(-1, 3).tolist()}


@pytest.mark.parametrize("name", PALETTES)
def test_every_palette_has_250_different_value_colours(name: str) -> None:
    values = palette(name).table[:250].tolist()
    assert len({tuple(colour) for colour in values}) == 250


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("mark", list(PixelMark), ids=lambda mark: mark.name)
def test_a_mark_is_unmistakable_among_the_values_of_every_palette(
    name: str, mark: PixelMark
) -> None:
    table = palette(name).table.astype(int)
    assert tuple(table[mark]) == MARK_COLOURS[mark]
    least = 8 if mark is PixelMark.PADDING else 60  # of 255, in the channel that differs most
    assert np.abs(table[:250] - table[mark]).max(1).min() >= least
    assert len(set(MARK_COLOURS[mark])) > 1, "no mark is grey"
    others = np.array([MARK_COLOURS[other] for other in PixelMark if other is not mark])
    assert np.abs(others - table[mark]).max(1).min() >= 100


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_non_finite_value_changes_no_other_pixel_by_more_than_one_level(bad: float) -> None:
    maps = random_maps(1, 4, 12, 12, seed=5)
    maps[0, 1, 3, 3], maps[0, 1, 4, 4] = maps.amin() - 1, maps.amax() + 1  # extremes elsewhere
    before = shown(maps)
    spoiled = maps.clone()
    spoiled[0, 1, 6, 6] = bad
    after = shown(spoiled)
    for channel in range(4):
        old, new = (tile_of(p, channel, maps).astype(int) for p in (before, after))
        off = np.abs(new - old).max(-1)
        if channel == 1:
            assert off[6, 6] > 60
            off[6, 6] = 0
        assert off.max() <= 1


def test_a_map_of_only_nan_does_not_change_its_neighbours() -> None:
    maps = torch.rand(1, 4, 5, 5, generator=torch.Generator().manual_seed(6))
    before = shown(maps)
    maps[0, 2] = NAN
    after = shown(maps)
    assert (tile_of(after, 2, maps) == [255, 0, 255]).all()
    for channel in (0, 1, 3):
        old, new = (tile_of(p, channel, maps).astype(int) for p in (before, after))
        assert np.abs(new - old).max() <= 1


def test_a_grid_without_marks_or_colour_is_plain_grey_with_one_byte_per_pixel() -> None:
    raster = draw_maps(planes_of(torch.rand(1, 3, 4, 4)), 0, GREY)
    assert raster.palette is None
    assert raster.pixels.shape == (20, 8)
