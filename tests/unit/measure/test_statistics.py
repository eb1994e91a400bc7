"""Per-channel statistics against float64 references in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy_statistics import assert_right, measure

from fmapboard.measure.statistics import statistics


def test_ordinary_maps_have_numpys_statistics() -> None:
    found = assert_right(torch.randn(4, 8, 13, 17))
    assert not found.constant.any()
    assert not found.nonfinite.any()
    assert found.dead is None


def test_differences_between_samples_count_towards_the_standard_deviation() -> None:
    maps = torch.randn(4, 3, 8, 8) + torch.tensor([0.0, 100.0, -50.0, 7.0])[:, None, None, None]
    assert_right(maps)


def test_one_nan_leaves_the_rest_of_its_channel_and_all_others_exact() -> None:
    maps = torch.randn(2, 3, 5, 5)
    maps[1, 1, 2, 3] = torch.nan
    found = assert_right(maps)
    assert found.nan.tolist() == [0, 1, 0]
    assert found.nonfinite.tolist() == [False, True, False]


def test_infinities_of_both_signs_are_counted_and_excluded_from_the_statistics() -> None:
    maps = torch.randn(2, 3, 5, 5)
    maps[0, 0, 0, :3] = torch.inf
    maps[1, 2, 1, :2] = -torch.inf
    found = assert_right(maps)
    assert found.positive_infinity.tolist() == [3, 0, 0]
    assert found.negative_infinity.tolist() == [0, 0, 2]
    assert found.nonfinite.tolist() == [True, False, True]


def test_a_channel_without_a_finite_value_has_nan_statistics() -> None:
    maps = torch.ones(2, 2, 3, 3)
    maps[:, 0] = torch.nan
    found = assert_right(maps)
    assert found.nan.tolist() == [18, 0]
    assert found.constant.tolist() == [False, True]


def test_values_of_3e38_do_not_overflow() -> None:
    maps = torch.full((2, 2, 4, 4), 3e38)
    maps[:, 1, ::2] = -3e38
    found = assert_right(maps)
    assert found.std[0] == 0.0
    assert found.std[1] == pytest.approx(3e38)


def test_denormals_are_not_flushed_to_zero() -> None:
    found = assert_right(torch.randn(2, 3, 8, 8) * 1e-40, relative=1e-4)
    assert (found.std > 5e-41).all()


@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_a_channel_of_very_small_or_very_large_values_keeps_its_standard_deviation(
    size: float,
) -> None:
    maps = torch.randn(3, 4, 8, 8)
    maps[:, 1] *= size
    assert_right(maps)


@pytest.mark.parametrize("side", [7, 64, 112, 300])
def test_many_similar_values_are_summed_without_drift(side: int) -> None:
    maps = torch.full((1, 2, side, side), 60000.0)
    maps[:, :, ::2] = 40000.0
    assert_right(maps)
    assert_right(maps.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("batch", [1, 4])
def test_a_small_standard_deviation_around_a_large_mean_is_exact(batch: int) -> None:
    found = assert_right(1e4 + 1e-2 * torch.randn(batch, 4, 56, 56))
    assert found.std == pytest.approx([0.01] * 4, rel=0.1)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e4, 1e-41, 3e38])
def test_a_constant_channel_has_exactly_its_value_and_no_standard_deviation(value: float) -> None:
    found = measure(torch.full((3, 1, 7, 9), value))
    stored = torch.tensor(value, dtype=torch.float32).item()
    assert found.minimum.tolist() == found.maximum.tolist() == [stored]
    assert found.mean.tolist() == [pytest.approx(stored, rel=1e-15)]
    assert found.std.tolist() == [0.0]
    assert found.constant.tolist() == [True]


def test_a_channel_that_differs_only_between_samples_is_not_constant() -> None:
    maps = torch.stack([torch.zeros(1, 4, 4), torch.ones(1, 4, 4)])
    found = assert_right(maps)
    assert found.constant.tolist() == [False]
    assert found.std.tolist() == [0.5]


@pytest.mark.parametrize("size", [(7, 7), (1, 2), (16, 16)])
def test_constant_planes_have_the_standard_deviation_of_their_levels(size: tuple[int, int]) -> None:
    levels = 1000.0 + torch.arange(8.0) * 1e-3
    maps = levels.reshape(8, 1, 1, 1).expand(8, 1, *size)
    found = measure(maps)
    assert found.std.tolist() == [pytest.approx(levels.double().std(correction=0).item(), rel=1e-6)]
    assert found.mean.tolist() == [pytest.approx(levels.double().mean().item(), rel=1e-9)]


def test_a_constant_channel_with_one_nan_is_not_constant() -> None:
    maps = torch.ones(1, 1, 4, 4)
    maps[0, 0, 0, 0] = torch.nan
    assert measure(maps).constant.tolist() == [False]


def test_one_pixel_of_one_sample_is_neither_constant_nor_dead() -> None:
    found = measure(torch.zeros(1, 3, 1, 1), floor=0.0)
    assert found.constant.tolist() == [False] * 3
    assert found.dead is not None
    assert found.dead.tolist() == [False] * 3
    assert found.std.tolist() == [0.0] * 3


def test_one_pixel_planes_are_constant_or_dead_across_the_batch() -> None:
    maps = torch.zeros(4, 3, 1, 1)
    maps[:, 1] = 2.0
    maps[1, 2] = 1.0
    found = measure(maps, floor=0.0)
    assert found.constant.tolist() == [True, True, False]
    assert found.dead is not None
    assert found.dead.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "shape", [(2, 1, 6, 6), (1, 2048, 3, 3), (5, 7), (3, 4, 11), (2, 3, 2, 4, 5)]
)
def test_any_number_of_channels_and_axes_is_reduced(shape: tuple[int, ...]) -> None:
    found = assert_right(torch.randn(shape))
    assert found.mean.shape == (shape[1],)


def test_float64_keeps_its_precision() -> None:
    maps = 1e4 + 1e-6 * torch.randn(2, 3, 8, 8, dtype=torch.float64)
    assert_right(maps)
    assert measure(maps).std == pytest.approx([1e-6] * 3, rel=0.3)


def test_channels_last_and_transposed_maps_have_the_same_statistics() -> None:
    maps = torch.randn(2, 5, 6, 7)
    assert_right(maps.to(memory_format=torch.channels_last))
    assert_right(torch.randn(2, 9, 4).transpose(1, 2))


def test_without_moments_mean_and_standard_deviation_are_nan() -> None:
    found = statistics(torch.zeros(2, 3, 4, 4), 0.0, moments=False).to_host()
    assert np.isnan([found.mean, found.std]).all()
    assert found.dead is not None
    assert found.dead.all()
