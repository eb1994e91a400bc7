"""Codes computed with torch, and decoded, are the pixels that the worker's quantizer computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fmapboard.measure.average_on_device import average
from fmapboard.measure.code_tiles import Codes, coded, joined
from fmapboard.measure.device_stats import plane_extremes
from fmapboard.measure.pending import PendingMaps
from fmapboard.records import Planes
from fmapboard.render.quantize import Quantizer

INF, NAN = torch.inf, torch.nan
LARGE = 3e38


def finite_planes() -> Tensor:
    """Planes [2, 8, 9, 11] that are hard to scale."""
    planes = torch.randn(2, 8, 9, 11, generator=torch.Generator().manual_seed(0))
    planes[:, 1] = planes[:, 1] * 1e-3 + 1e4
    planes[:, 2] = 1.5
    planes[:, 3] = torch.where(planes[:, 3] > 0, LARGE, -LARGE) * planes[:, 3].tanh()
    planes[:, 4] = (planes[:, 4] * 8).round() * 2.0**-149
    planes[:, 5] = -planes[:, 5].abs() - 1e-30
    planes[0, 6] = 0.0
    planes[:, 7] *= 1e-20
    return planes


def nonfinite_planes() -> Tensor:
    """The same planes with NaN and infinite values in each, and one with nothing else."""
    planes = finite_planes()
    planes[:, :, 0, :3] = torch.tensor([NAN, INF, -INF])
    planes[0, 0, 2:5] = NAN
    planes[1, 0] = torch.where(planes[1, 0] > 0, INF, NAN)
    planes[1, 6] = NAN
    planes[0, 5, 0, :3] = -7.0
    return planes


def decoded(tiles: list[Tensor], *, zero_centered: bool = False) -> list[Planes]:
    """The planes of tiles that are coded in one group per size."""
    found: dict[int, Planes] = {}
    groups: dict[Any, list[int]] = {}
    for number, tile in enumerate(tiles):
        groups.setdefault((tile.shape[2:], tile.dtype), []).append(number)
    members = list(groups.values())

    def done(group: int, codes: Codes) -> None:
        start = 0
        for number in members[group]:
            tile = tiles[number]
            end = start + tile.shape[0] * tile.shape[1]
            of = codes.codes[start:end].view(tile.shape)
            maps = PendingMaps(of, tile.shape[1], "", limits=codes.limits[start:end])
            of_host = maps.coded()
            assert of_host is not None
            quantizer = Quantizer(None, zero_centered=zero_centered)
            found[number] = of_host.planes(quantizer, tuple(tile.shape), tile.shape[1], "")
            start = end

    rows = [joined([tiles[number] for number in group]) for group in members]
    coded(rows, zero_centered=zero_centered, done=done)
    return [found[number] for number in range(len(tiles))]


def quantized(tile: Tensor, *, zero_centered: bool = False) -> Planes:
    quantizer = Quantizer(None, zero_centered=zero_centered)
    return quantizer("", tile.float().numpy(), tuple(tile.shape), tile.shape[1], "")


def assert_same_planes(own: Planes, expected: Planes, *, within: int) -> None:
    difference = own.pixels.astype(int) - expected.pixels
    assert abs(difference).max() <= within, abs(difference).max((2, 3))
    np.testing.assert_array_equal(own.lo, expected.lo)
    np.testing.assert_array_equal(own.hi, expected.hi)
    np.testing.assert_array_equal(own.flat, expected.flat)
    assert (own.marks is None) == (expected.marks is None)
    if own.marks is not None and expected.marks is not None:
        np.testing.assert_array_equal(own.marks, expected.marks)


@pytest.mark.parametrize("zero_centered", [False, True])
def test_finite_planes_have_the_pixels_of_the_quantizer(zero_centered: bool) -> None:
    ordinary = torch.randn(3, 4, 7, 7, generator=torch.Generator().manual_seed(1))
    tiles = [finite_planes(), ordinary, finite_planes() * -1]
    for own, tile in zip(decoded(tiles, zero_centered=zero_centered), tiles, strict=True):
        expected = quantized(tile, zero_centered=zero_centered)
        # Differences of 6e38 are halved first, which may change the last bit.
        assert_same_planes(own, expected, within=1)
        same = [n for n in range(tile.shape[1]) if n != 3]
        np.testing.assert_array_equal(own.pixels[:, same], expected.pixels[:, same])


@pytest.mark.parametrize("zero_centered", [False, True])
def test_nonfinite_values_are_marked_and_the_others_drawn_within_1(zero_centered: bool) -> None:
    tiles = [nonfinite_planes(), finite_planes()]
    own, clean = decoded(tiles, zero_centered=zero_centered)
    assert_same_planes(own, quantized(tiles[0], zero_centered=zero_centered), within=1)
    assert_same_planes(clean, quantized(tiles[1], zero_centered=zero_centered), within=1)
    assert own.marks is not None
    assert clean.marks is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_planes_are_coded_in_float32(dtype: torch.dtype) -> None:
    tile = finite_planes()[:, [0, 1, 2, 5]].to(dtype)
    tile[1, 0, 0, 0] = INF
    (own,) = decoded([tile])
    expected = quantized(tile)
    assert_same_planes(own, expected, within=1)
    np.testing.assert_array_equal(own.pixels[0], expected.pixels[0])


def test_the_largest_value_is_white_and_the_smallest_black_also_beside_marks() -> None:
    tile = torch.rand(1, 200, 5, 5, generator=torch.Generator().manual_seed(0)) * 37 - 11
    tile[0, 100:, 2, 2] = NAN
    (own,) = decoded([tile])
    flat = own.pixels.reshape(200, 25)
    values = tile.reshape(200, 25)
    filled = values.nan_to_num(nan=0.0)
    for pick, pixel in ((filled.argmax(1), 255), (filled.argmin(1), 0)):
        assert (flat[np.arange(200), pick.numpy()] == pixel).all()


def averaged(maps: Tensor, *, zero_centered: bool) -> tuple[Planes, Planes]:
    """The planes of maps averaged as on a device, coded, and as the worker quantizes them."""
    quantizer = Quantizer(4, zero_centered=zero_centered)
    means, block = average(maps, 4)
    extremes = plane_extremes(maps.flatten(2))
    shape, channels = tuple(maps.shape), maps.shape[1]
    found: list[Planes] = []

    def done(group: int, codes: Codes) -> None:
        of = codes.codes.view(means.shape)
        own = PendingMaps(of, channels, "", False, "tiles", block, extremes, codes.limits)
        on_host = own.coded()
        assert on_host is not None
        found.append(on_host.planes(quantizer, shape, channels, "", "tiles", own.averaged()))

    coded([joined([means])], zero_centered=zero_centered, done=done)
    how = PendingMaps(means, channels, "", False, "tiles", block, extremes).averaged()
    expected = quantizer("", means.numpy(), shape, channels, "", None, "tiles", how)
    return found[0], expected


@pytest.mark.parametrize("zero_centered", [False, True])
@pytest.mark.parametrize("special", ["finite", "constant", "overflow", "nonfinite"])
def test_averaged_planes_are_drawn_as_the_worker_draws_their_means(
    special: str, zero_centered: bool
) -> None:
    maps = torch.randn(2, 5, 10, 12, generator=torch.Generator().manual_seed(0))
    if special == "constant":
        maps[:, 1], maps[0, 2], maps[0, 3] = 0.1, -1 / 3, 0.0
    if special == "overflow":
        maps[:, 1] = LARGE
        maps[0, 2, :3], maps[0, 3, :3], maps[1, 3] = LARGE, -LARGE, maps[1, 3].sign() * LARGE
    if special == "nonfinite":
        maps[:, 1, 0, 0], maps[0, 2, 1, 1], maps[1, 3, 4, 4], maps[0, 4] = NAN, INF, -INF, NAN
    own, expected = averaged(maps, zero_centered=zero_centered)
    assert_same_planes(own, expected, within=1)
    assert own.block == expected.block == 3
    if special in ("finite", "constant"):
        np.testing.assert_array_equal(own.pixels, expected.pixels)
