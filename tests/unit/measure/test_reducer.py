"""Captured maps to planes: pixels, limits, marks and scales that share no memory with the maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from reduced_maps import CALL, CONV, planes_of, reduced
from reducers import reducer_of
from torch import Tensor

from fmapboard import extract
from fmapboard.measure.reducer import Reducer, joined
from fmapboard.measure.statistics import PendingStatistics
from fmapboard.records import LayerCall, PixelMark


def _make_grid_pixels(maps: Tensor) -> np.ndarray[Any, Any]:
    """u8 [C, H, W] of sample 0 as `make_grid(normalize=True, scale_each=True)` has them."""
    tiles = [
        torchvision.utils.make_grid(one[None, None], normalize=True, scale_each=True, padding=0)[0]
        for one in maps[0]
    ]
    pixels: np.ndarray[Any, Any] = (torch.stack(tiles).numpy() * 255).astype(np.uint8)
    return pixels


@pytest.mark.slow
def test_pixels_equal_make_grids_within_one_on_the_maps_of_a_real_network() -> None:
    model = torchvision.models.resnet18().eval()
    maps = extract(model, torch.rand(1, 3, 64, 64))
    assert len(maps) == 20
    for name, value in maps.items():
        if value.shape[2] * value.shape[3] == 1:
            continue
        planes = planes_of(value, max_channels=None, max_tile=None)
        difference = np.abs(planes.pixels[0].astype(int) - _make_grid_pixels(value))
        assert difference.max() <= 1, name
        assert planes.marks is None
        assert not planes.flat.any()


@pytest.mark.parametrize("scale", ["channel", "layer", "locked"])
@pytest.mark.parametrize("max_tile", [None, 4])
def test_nothing_that_is_kept_aliases_the_live_tensor(scale: Any, max_tile: int | None) -> None:
    maps = torch.rand(1, 3, 8, 8)
    expected = reduced(maps.clone(), scale=scale, max_tile=max_tile)
    pending = reducer_of(scale=scale, max_tile=max_tile)(CALL, "feature_maps", maps, CONV)
    maps.fill_(torch.nan)  # the very next operation overwrites it
    found = pending.to_host()
    assert found.planes is not None
    assert expected.planes is not None
    for name in ("pixels", "lo", "hi", "flat"):
        assert np.array_equal(getattr(found.planes, name), getattr(expected.planes, name)), name
    assert found.planes.marks is None
    assert found.sample is not None
    assert expected.sample is not None
    assert np.array_equal(found.sample.values, expected.sample.values)
    assert found.statistics is not None
    assert not found.statistics.nonfinite.any()


def test_samples_and_channels_are_limited_in_pictures_and_never_in_statistics() -> None:
    maps = torch.rand(4, 10, 5, 6)
    found = reduced(maps, samples=2, max_channels=3)
    assert found.planes is not None
    assert found.planes.pixels.shape == (2, 3, 5, 6)
    assert (found.planes.channels, found.planes.shape) == (10, (4, 10, 5, 6))
    assert found.planes.lo[1].tolist() == maps[1, :3].amin((1, 2)).double().tolist()
    assert found.statistics is not None
    assert found.statistics.mean.shape == (10,)
    assert found.statistics.maximum.tolist() == maps.amax((0, 2, 3)).double().tolist()
    assert found.sample is not None
    assert found.sample.total == found.sample.values.size == 1200
    everything = planes_of(maps, samples=None, max_channels=None)
    assert everything.pixels.shape == (4, 10, 5, 6)


def test_marks_name_non_finite_values_and_limits_are_those_of_the_rest() -> None:
    maps = torch.arange(9.0).view(1, 1, 3, 3)
    maps[0, 0, 0] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    planes = planes_of(maps)
    assert (planes.lo.item(), planes.hi.item()) == (3.0, 8.0)
    assert planes.marks is not None
    assert planes.marks[0, 0].tolist() == [
        [PixelMark.NAN, PixelMark.POSITIVE_INFINITY, PixelMark.NEGATIVE_INFINITY],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert planes.pixels[0, 0, 1:].tolist() == [[0, 51, 102], [153, 204, 255]]


def test_a_plane_without_a_finite_value_has_zero_limits_and_is_not_flat() -> None:
    planes = planes_of(torch.full((1, 1, 3, 3), torch.nan))
    assert (planes.lo.item(), planes.hi.item(), planes.flat.item()) == (0.0, 0.0, False)
    assert planes.marks is not None
    assert (planes.marks == PixelMark.NAN).all()


@pytest.mark.parametrize("factor", [3e38, 1.0, 1e-30, 1e-42])
def test_any_range_is_drawn_from_black_to_white(factor: float) -> None:
    maps = (torch.linspace(-1, 1, 16) * factor).view(1, 1, 4, 4)
    pixels = planes_of(maps).pixels[0, 0].ravel().astype(int)
    expected = np.linspace(0, 255, 16)
    assert np.abs(pixels - expected).max() <= (1.0 if factor > 1e-40 else 2.0)
    assert (pixels[0], pixels[-1]) == (0, 255)


def test_a_locked_scale_keeps_the_first_range_of_each_channel() -> None:
    reducer = reducer_of(scale="locked")

    def pixels(*channels: list[float]) -> list[list[int]]:
        maps = torch.tensor(channels).view(1, -1, 1, 3)
        planes = reducer(CALL, "feature_maps", maps, CONV).to_host().planes
        assert planes is not None
        return [plane.ravel().tolist() for plane in planes.pixels[0]]

    assert pixels([0, 1, 2], [5, 5, 5]) == [[0, 127, 255], [0, 0, 0]]
    assert pixels([0, 1, 4], [0, 5, 10]) == [[0, 127, 255], [0, 127, 255]]
    assert pixels([-9, 2, 9], [0, 20, -1]) == [[0, 255, 255], [0, 255, 0]]
    other = LayerCall("conv", "Conv2d", call=2)
    maps = torch.tensor([[[[0.0, 4.0, 8.0]], [[0.0, 4.0, 8.0]]]])
    own = reducer(other, "feature_maps", maps, CONV).to_host().planes
    assert own is not None
    assert own.pixels.reshape(2, 3).tolist() == [[0, 127, 255], [0, 127, 255]]


def test_a_layer_scale_is_shared_by_all_drawn_channels_of_a_sample() -> None:
    maps = torch.tensor([[[[0.0, 1.0]], [[2.0, 4.0]]], [[[0.0, 8.0]], [[1.0, 2.0]]]])
    planes = planes_of(maps, samples=2, scale="layer")
    assert planes.hi.tolist() == [[4.0, 4.0], [8.0, 8.0]]
    assert planes.pixels[0].tolist() == [[[0, 63]], [[127, 255]]]


def test_a_zero_centred_scale_is_symmetric_around_zero() -> None:
    planes = planes_of(torch.tensor([[[[-1.0, 0.0, 4.0]]]]), zero_centered=True)
    assert (planes.lo.item(), planes.hi.item()) == (-4.0, 4.0)
    assert planes.pixels.ravel().tolist() == [95, 127, 255]


def test_one_pixel_planes_are_scaled_across_the_layer_and_are_not_constant() -> None:
    planes = planes_of(torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1))
    assert planes.pixels.ravel().tolist() == [0, 127, 255]
    assert planes.flat.tolist() == [[False, False, False]]


def test_a_layer_whose_statistics_fail_is_reported_and_only_it_is_left_out() -> None:
    maps = torch.randn(2, 3, 8, 8)
    failed: list[tuple[str, type[Exception]]] = []
    layer_calls = [LayerCall(name, "Conv2d", position=n) for n, name in enumerate(("a", "b", "c"))]
    good = [Reducer()(layer_call, "feature_maps", maps, CONV) for layer_call in layer_calls]
    numbers = good[1].statistics
    assert isinstance(numbers, PendingStatistics)
    torn = numbers._replace(parts=(maps[0, :, 0], maps[0, :, :, :0].flatten(1)))
    pending = [good[2], good[1]._replace(statistics=torn), good[0]]
    found = joined(pending, lambda about, error: failed.append((about, type(error))))
    assert [measured.layer_call.label for measured in found] == ["a", "c"]
    assert failed == [("b", ValueError)]
    for measured, alone in zip(found, (good[0], good[2]), strict=True):
        np.testing.assert_array_equal(measured.statistics.mean, alone.to_host().statistics.mean)  # type: ignore[union-attr]
