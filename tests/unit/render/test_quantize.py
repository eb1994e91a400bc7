"""Quantization to 8-bit planes, for values of any offset and range."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.records import Planes
from fmapboard.render.quantize import Quantizer, finite_extremes, quantize, shrink


def planes_of(maps: np.ndarray, **options: object) -> Planes:
    quantizer = Quantizer(**{"max_tile": None, **options})  # type: ignore[arg-type]
    return quantizer("conv", maps, maps.shape, maps.shape[1], "")


def test_the_given_maps_are_not_changed() -> None:
    maps = np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype(np.float32)
    before = maps.copy()
    for tile in (None, 4):
        planes_of(maps, max_tile=tile)
        assert np.array_equal(maps, before)


@pytest.mark.parametrize("side", [5, 12, 13])
def test_blocks_at_the_border_are_means_of_their_existing_pixels(side: int) -> None:
    maps = np.random.default_rng(1).standard_normal((2, 3, side, side)).astype(np.float32)
    means, block = shrink(maps, 4)
    for row in range(means.shape[2]):
        for column in range(means.shape[3]):
            block_values = maps[
                ..., row * block : (row + 1) * block, column * block : (column + 1) * block
            ]
            expected = block_values.mean((2, 3), dtype=np.float64)
            assert means[..., row, column] == pytest.approx(expected, abs=1e-6)


def test_the_largest_value_is_white_and_the_smallest_black_at_any_offset() -> None:
    generator = np.random.default_rng(2)
    for level in (0.0, 1e-3, -7.0, 1e6):
        maps = (generator.standard_normal((1, 40, 7, 7)) + level).astype(np.float32)
        pixels = planes_of(maps).pixels
        assert (pixels.max((2, 3)) == 255).all()
        assert (pixels.min((2, 3)) == 0).all()


def test_values_outside_a_locked_scale_are_clipped_to_it() -> None:
    quantizer = Quantizer(None, "locked")

    def pixels(*values: float) -> list[int]:
        maps = np.array(values, np.float32).reshape(1, 1, 1, -1)
        planes = quantizer("conv", maps, maps.shape, 1, "")
        found: list[int] = planes.pixels[0, 0, 0].tolist()
        return found

    assert pixels(0.0, 1.0) == [0, 255]
    assert pixels(-5.0, 0.5, 9.0) == [0, 127, 255]


def test_a_locked_scale_survives_a_batch_of_another_size() -> None:
    quantizer = Quantizer(None, "locked")
    maps = np.random.default_rng(3).random((2, 3, 5, 5), np.float32)
    first = quantizer("conv", maps, maps.shape, 3, "")
    short = quantizer("conv", maps[:1], maps.shape, 3, "")
    assert short.hi.shape == (1, 3)
    later = quantizer("conv", maps * 50, maps.shape, 3, "")
    assert np.array_equal(later.hi, first.hi)


def test_extremes_say_whether_all_values_are_finite() -> None:
    maps = np.ones((1, 2, 2, 2), np.float32)
    assert finite_extremes(maps)[2]
    maps[0, 1, 0, 0] = np.nan
    lo, hi, finite = finite_extremes(maps, (2, 3))
    assert (lo.tolist(), hi.tolist(), finite) == ([[1.0, 1.0]], [[1.0, 1.0]], False)


def test_a_float64_map_is_quantized_in_float64() -> None:
    maps = (1.0 + np.arange(4.0).reshape(1, 1, 1, 4) * 1e-12).astype(np.float64)
    lo, hi = maps.min((2, 3)), maps.max((2, 3))
    assert quantize(maps, lo, hi)[0, 0, 0].tolist() == [0, 85, 169, 255]


def test_planes_that_do_not_fit_into_the_cache_together_are_quantized_like_each_alone() -> None:
    maps = np.random.default_rng(4).standard_normal((2, 11, 120, 130)).astype(np.float32)
    maps[1, 10, 5, 5] = np.nan
    together = planes_of(maps).pixels
    for sample, channel in np.ndindex(2, 11):
        alone = planes_of(maps[sample : sample + 1, channel : channel + 1]).pixels
        assert np.array_equal(together[sample, channel], alone[0, 0])
