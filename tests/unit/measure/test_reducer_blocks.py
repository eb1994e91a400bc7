"""Maps larger than `max_tile` are averaged over whole square blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reduced_maps import planes_of

from fmapboard.records import PixelMark
from fmapboard.render.quantize import shrink


def test_a_larger_map_is_averaged_over_whole_square_blocks() -> None:
    maps = torch.rand(1, 2, 12, 20)
    small, block = shrink(maps.numpy(), 7)
    assert block == 3
    assert small.shape == (1, 2, 4, 7)
    means = maps.double().numpy()[..., :18].reshape(1, 2, 4, 3, 6, 3).mean((3, 5))
    assert np.abs(small[..., :6] - means).max() < 1e-6
    border = maps.double().numpy()[..., 18:].reshape(1, 2, 4, 3, 2).mean((3, 4))
    assert np.abs(small[..., 6] - border).max() < 1e-6
    planes = planes_of(maps, max_tile=7)
    assert (planes.block, planes.pixels.shape, planes.shape) == (3, (1, 2, 4, 7), (1, 2, 12, 20))


def test_a_map_that_fits_is_not_averaged_and_a_long_one_is_averaged_in_both_directions() -> None:
    maps = np.random.default_rng(0).random((1, 1, 64, 64), np.float32)
    assert shrink(maps, 64)[1] == 1
    assert shrink(maps, None)[0] is maps
    small, block = shrink(np.arange(8.0).reshape(1, 1, 1, 8), 2)
    assert (block, small.tolist()) == (4, [[[[1.5, 5.5]]]])


def test_averaging_3e38_does_not_overflow() -> None:
    maps = torch.full((1, 1, 8, 8), 3e38)
    maps[..., 4:] = -3e38
    planes = planes_of(maps, max_tile=4)
    assert planes.marks is None
    assert planes.lo.tolist() == [[pytest.approx(-3e38)]]
    assert planes.hi.tolist() == [[pytest.approx(3e38)]]
    assert planes.pixels[0, 0].tolist() == [[255, 255, 0, 0]] * 4


def test_a_non_finite_value_affects_only_its_own_block() -> None:
    maps = torch.rand(1, 1, 8, 8)
    good = planes_of(maps, max_tile=4)
    maps[0, 0, 5, 2] = torch.nan
    planes = planes_of(maps, max_tile=4)
    assert planes.marks is not None
    assert np.argwhere(planes.marks[0, 0]).tolist() == [[2, 1]]
    assert planes.marks[0, 0, 2, 1] == PixelMark.NAN
    rest = np.delete(planes.pixels.ravel(), 9).astype(int)
    assert np.abs(rest - np.delete(good.pixels.ravel(), 9)).max() <= 40
    assert rest.max() == 255


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 3.3, 0.0])
@pytest.mark.parametrize("side", [100, 130, 151])
def test_a_constant_map_stays_constant_when_it_is_averaged(value: float, side: int) -> None:
    maps = torch.full((1, 2, side, side), value)
    maps[0, 1, 0, 0] = 9.0
    planes = planes_of(maps)
    assert planes.flat.tolist() == [[True, False]]
    assert planes.lo[0, 0] == planes.hi[0, 0] == torch.tensor(value).item()
    assert (planes.pixels[0, 0] == 0).all()


def test_a_map_whose_blocks_have_equal_means_is_not_constant() -> None:
    board = (torch.arange(8)[:, None] + torch.arange(8)) % 2
    assert planes_of(board.float()[None, None], max_tile=4).flat.tolist() == [[False]]
