"""Maps averaged on an accelerator are drawn like maps averaged on the host."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fmapboard.measure.reducer import average
from fmapboard.records import PixelMark, Planes
from fmapboard.render.quantize import Averaged, Quantizer, shrink

SIDE = 4


def drawn_from_device(maps: Tensor, *, is_known: bool = True) -> Planes:
    means, block = average(maps, SIDE)
    lo, hi = (end.double().numpy() for end in (maps.amin((2, 3)), maps.amax((2, 3))))
    if not is_known:
        lo, hi = np.full((2, *lo.shape), np.nan)
    averaged = Averaged(block, lo, hi)
    return Quantizer(SIDE)(
        "layer", means.numpy(), tuple(maps.shape), maps.shape[1], "", averaged=averaged
    )


def drawn_from_host(maps: Tensor) -> Planes:
    return Quantizer(SIDE)("layer", maps.numpy(), tuple(maps.shape), maps.shape[1], "")


def random_maps(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (2, 3, 9, 13), (1, 3, 1, 50), (1, 2, 5, 4)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_means_are_those_of_the_host(shape: tuple[int, ...], layout: torch.memory_format) -> None:
    maps = random_maps(*shape)
    means, block = average(maps.contiguous(memory_format=layout), SIDE)
    expected, expected_block = shrink(maps.numpy(), SIDE)
    assert (means.is_contiguous(), block) == (True, expected_block)
    np.testing.assert_allclose(means.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_16_bit_maps_are_averaged_in_float32() -> None:
    maps = random_maps(1, 2, 64, 64).bfloat16()
    means, _ = average(maps, SIDE)
    np.testing.assert_allclose(
        means.numpy(), shrink(maps.float().numpy(), SIDE)[0], rtol=1e-5, atol=1e-6
    )


def test_a_constant_map_stays_constant() -> None:
    maps = random_maps(1, 3, 21, 21)
    maps[0, 1] = 0.1
    here, there = drawn_from_device(maps), drawn_from_host(maps)
    assert here.flat.tolist() == there.flat.tolist() == [[False, True, False]]
    assert here.lo[0, 1] == here.hi[0, 1] == np.float32(0.1)
    assert np.abs(here.pixels.astype(int) - there.pixels.astype(int)).max() <= 1


def test_a_map_of_almost_one_value_whose_extremes_are_not_known_is_not_drawn_as_noise() -> None:
    planes = drawn_from_device(torch.full((1, 1, 21, 21), 0.1), is_known=False)
    assert planes.flat.all()
    assert len(np.unique(planes.pixels)) == 1


def test_a_sum_beyond_float32_is_drawn_as_the_largest_value() -> None:
    maps = torch.full((1, 2, 8, 8), 3e38)
    maps[0, 1, :4] = -3e38
    assert torch.isinf(average(maps, SIDE)[0]).all()
    here, there = drawn_from_device(maps), drawn_from_host(maps)
    assert here.marks is None
    np.testing.assert_array_equal(here.pixels, there.pixels)
    np.testing.assert_array_equal(here.flat, there.flat)


def test_blocks_with_nonfinite_values_are_marked() -> None:
    maps = random_maps(1, 3, 8, 8)
    maps[0, 0, 0, 0], maps[0, 1, 7, 7], maps[0, 2, 0, 7] = torch.nan, torch.inf, -torch.inf
    here, there = drawn_from_device(maps), drawn_from_host(maps)
    assert here.marks is not None
    assert there.marks is not None
    assert here.marks[0, 0, 0, 0] == PixelMark.NAN
    np.testing.assert_array_equal(here.marks, there.marks)
    assert np.abs(here.pixels.astype(int) - there.pixels.astype(int)).max() <= 1
