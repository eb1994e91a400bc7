"""Captured tensors to planes, samples and statistics that share nothing with them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import Tensor, nn

from fmapboard import extract
from fmapboard.measure.channel_stats import PendingStatistics
from fmapboard.measure.reducer import Pending, Reducer, joined
from fmapboard.measure.subsample import SAMPLE_SIZE, sample
from fmapboard.records import Mark, Measured, Planes, Site
from fmapboard.render.average import shrink
from fmapboard.render.extremes import finite_extremes

torch.set_num_threads(1)

SITE = Site("conv", "Conv2d")
CONV = nn.Conv2d(1, 1, 1)


def _reduce(maps: Tensor, module: nn.Module = CONV, site: Site = SITE, **options: Any) -> Measured:
    return Reducer(**options)(site, "feature_maps", maps, module).to_host()


def _planes(maps: Tensor, module: nn.Module = CONV, **options: Any) -> Planes:
    planes = _reduce(maps, module, **options).planes
    assert planes is not None
    return planes


def _make_grid_pixels(maps: Tensor) -> np.ndarray[Any, Any]:
    """u8 [C, H, W] of sample 0 as `make_grid(normalize=True, scale_each=True)` has them."""
    tiles = [
        torchvision.utils.make_grid(one[None, None], normalize=True, scale_each=True, padding=0)[0]
        for one in maps[0]
    ]
    pixels: np.ndarray[Any, Any] = (torch.stack(tiles).numpy() * 255).astype(np.uint8)
    return pixels


def test_pixels_equal_make_grids_within_one_on_the_maps_of_a_real_network() -> None:
    model = torchvision.models.resnet18().eval()
    maps = extract(model, torch.rand(1, 3, 64, 64))
    assert len(maps) == 20
    for name, value in maps.items():
        if value.shape[2] * value.shape[3] == 1:
            continue
        planes = _planes(value, max_channels=None, max_tile=None)
        difference = np.abs(planes.pixels[0].astype(int) - _make_grid_pixels(value))
        assert difference.max() <= 1, name
        assert planes.marks is None
        assert not planes.flat.any()


@pytest.mark.parametrize("scale", ["channel", "layer", "locked"])
@pytest.mark.parametrize("max_tile", [None, 4])
def test_nothing_that_is_kept_aliases_the_live_tensor(scale: Any, max_tile: int | None) -> None:
    maps = torch.rand(1, 3, 8, 8)
    expected = _reduce(maps.clone(), scale=scale, max_tile=max_tile)
    pending = Reducer(scale=scale, max_tile=max_tile)(SITE, "feature_maps", maps, CONV)
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


def test_samples_and_channels_are_limited_in_pictures_and_never_in_numbers() -> None:
    maps = torch.rand(4, 10, 5, 6)
    found = _reduce(maps, samples=2, max_channels=3)
    assert found.planes is not None
    assert found.planes.pixels.shape == (2, 3, 5, 6)
    assert (found.planes.channels, found.planes.shape) == (10, (4, 10, 5, 6))
    assert found.planes.lo[1].tolist() == maps[1, :3].amin((1, 2)).double().tolist()
    assert found.statistics is not None
    assert found.statistics.mean.shape == (10,)
    assert found.statistics.maximum.tolist() == maps.amax((0, 2, 3)).double().tolist()
    assert found.sample is not None
    assert found.sample.total == found.sample.values.size == 1200
    everything = _planes(maps, samples=None, max_channels=None)
    assert everything.pixels.shape == (4, 10, 5, 6)


def test_a_larger_map_is_averaged_over_whole_square_blocks() -> None:
    maps = torch.rand(1, 2, 12, 20)
    small, block = shrink(maps.numpy(), 7)
    assert block == 3
    assert small.shape == (1, 2, 4, 7)
    means = maps.double().numpy()[..., :18].reshape(1, 2, 4, 3, 6, 3).mean((3, 5))
    assert np.abs(small[..., :6] - means).max() < 1e-6
    border = maps.double().numpy()[..., 18:].reshape(1, 2, 4, 3, 2).mean((3, 4))
    assert np.abs(small[..., 6] - border).max() < 1e-6
    planes = _planes(maps, max_tile=7)
    assert (planes.block, planes.pixels.shape, planes.shape) == (3, (1, 2, 4, 7), (1, 2, 12, 20))


def test_a_map_that_fits_is_not_averaged_and_a_long_one_is_in_both_directions() -> None:
    maps = np.random.default_rng(0).random((1, 1, 64, 64), np.float32)
    assert shrink(maps, 64)[1] == 1
    assert shrink(maps, None)[0] is maps
    small, block = shrink(np.arange(8.0).reshape(1, 1, 1, 8), 2)
    assert (block, small.tolist()) == (4, [[[[1.5, 5.5]]]])


def test_averaging_3e38_does_not_overflow() -> None:
    maps = torch.full((1, 1, 8, 8), 3e38)
    maps[..., 4:] = -3e38
    planes = _planes(maps, max_tile=4)
    assert planes.marks is None
    assert planes.lo.tolist() == [[pytest.approx(-3e38)]]
    assert planes.hi.tolist() == [[pytest.approx(3e38)]]
    assert planes.pixels[0, 0].tolist() == [[255, 255, 0, 0]] * 4


def test_a_bad_value_spoils_the_one_block_that_it_is_in() -> None:
    maps = torch.rand(1, 1, 8, 8)
    good = _planes(maps, max_tile=4)
    maps[0, 0, 5, 2] = torch.nan
    planes = _planes(maps, max_tile=4)
    assert planes.marks is not None
    assert np.argwhere(planes.marks[0, 0]).tolist() == [[2, 1]]
    assert planes.marks[0, 0, 2, 1] == Mark.NAN
    rest = np.delete(planes.pixels.ravel(), 9).astype(int)
    assert np.abs(rest - np.delete(good.pixels.ravel(), 9)).max() <= 40
    assert rest.max() == 255


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 3.3, 0.0])
@pytest.mark.parametrize("side", [100, 130, 151])
def test_a_constant_map_stays_constant_when_it_is_averaged(value: float, side: int) -> None:
    maps = torch.full((1, 2, side, side), value)
    maps[0, 1, 0, 0] = 9.0
    planes = _planes(maps)
    assert planes.flat.tolist() == [[True, False]]
    assert planes.lo[0, 0] == planes.hi[0, 0] == torch.tensor(value).item()
    assert (planes.pixels[0, 0] == 0).all()


def test_a_map_whose_blocks_have_one_mean_is_not_called_constant() -> None:
    board = (torch.arange(8)[:, None] + torch.arange(8)) % 2
    assert _planes(board.float()[None, None], max_tile=4).flat.tolist() == [[False]]


def test_marks_name_what_is_not_finite_and_limits_are_of_the_rest() -> None:
    maps = torch.arange(9.0).view(1, 1, 3, 3)
    maps[0, 0, 0] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    planes = _planes(maps)
    assert (planes.lo.item(), planes.hi.item()) == (3.0, 8.0)
    assert planes.marks is not None
    assert planes.marks[0, 0].tolist() == [
        [Mark.NAN, Mark.POSITIVE_INFINITY, Mark.NEGATIVE_INFINITY],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert planes.pixels[0, 0, 1:].tolist() == [[0, 51, 102], [153, 204, 255]]


def test_a_plane_without_a_finite_value_has_the_limits_zero_and_is_not_flat() -> None:
    planes = _planes(torch.full((1, 1, 3, 3), torch.nan))
    assert (planes.lo.item(), planes.hi.item(), planes.flat.item()) == (0.0, 0.0, False)
    assert planes.marks is not None
    assert (planes.marks == Mark.NAN).all()


@pytest.mark.parametrize("factor", [3e38, 1.0, 1e-30, 1e-42])
def test_any_range_is_drawn_from_black_to_white(factor: float) -> None:
    maps = (torch.linspace(-1, 1, 16) * factor).view(1, 1, 4, 4)
    pixels = _planes(maps).pixels[0, 0].ravel().astype(int)
    expected = np.linspace(0, 255, 16)
    assert np.abs(pixels - expected).max() <= (1.0 if factor > 1e-40 else 2.0)
    assert (pixels[0], pixels[-1]) == (0, 255)


def test_a_locked_scale_stays_as_it_was_when_a_channel_first_had_a_range() -> None:
    reducer = Reducer(scale="locked")

    def pixels(*channels: list[float]) -> list[list[int]]:
        maps = torch.tensor(channels).view(1, -1, 1, 3)
        planes = reducer(SITE, "feature_maps", maps, CONV).to_host().planes
        assert planes is not None
        return [plane.ravel().tolist() for plane in planes.pixels[0]]

    assert pixels([0, 1, 2], [5, 5, 5]) == [[0, 127, 255], [0, 0, 0]]
    assert pixels([0, 1, 4], [0, 5, 10]) == [[0, 127, 255], [0, 127, 255]]
    assert pixels([-9, 2, 9], [0, 20, -1]) == [[0, 255, 255], [0, 255, 0]]
    other = Site("conv", "Conv2d", call=2)
    maps = torch.tensor([[[[0.0, 4.0, 8.0]], [[0.0, 4.0, 8.0]]]])
    own = reducer(other, "feature_maps", maps, CONV).to_host().planes
    assert own is not None
    assert own.pixels.reshape(2, 3).tolist() == [[0, 127, 255], [0, 127, 255]]


def test_a_layer_scale_is_one_for_all_drawn_channels_of_a_sample() -> None:
    maps = torch.tensor([[[[0.0, 1.0]], [[2.0, 4.0]]], [[[0.0, 8.0]], [[1.0, 2.0]]]])
    planes = _planes(maps, samples=2, scale="layer")
    assert planes.hi.tolist() == [[4.0, 4.0], [8.0, 8.0]]
    assert planes.pixels[0].tolist() == [[[0, 63]], [[127, 255]]]


def test_a_zero_centred_scale_reaches_as_far_down_as_up() -> None:
    planes = _planes(torch.tensor([[[[-1.0, 0.0, 4.0]]]]), zero_centred=True)
    assert (planes.lo.item(), planes.hi.item()) == (-4.0, 4.0)
    assert planes.pixels.ravel().tolist() == [95, 127, 255]


def test_one_pixel_planes_are_scaled_over_the_layer_and_are_not_constant() -> None:
    planes = _planes(torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1))
    assert planes.pixels.ravel().tolist() == [0, 127, 255]
    assert planes.flat.tolist() == [[False, False, False]]


# --- every kind of map


@pytest.mark.parametrize(
    ("module", "x", "pixels", "view"),
    [
        (nn.Conv1d(2, 5, 3), (3, 2, 9), (1, 5, 1, 7), "one axis, drawn as a line"),
        (nn.Conv1d(2, 5, 3), (2, 9), (1, 5, 1, 7), "one axis, drawn as a line"),
        (nn.ConvTranspose1d(2, 5, 3), (3, 2, 9), (1, 5, 1, 11), "one axis, drawn as a line"),
        (nn.Conv2d(2, 5, 3), (2, 9, 8), (1, 5, 7, 6), ""),
        (nn.ConvTranspose2d(2, 5, 3), (3, 2, 9, 8), (1, 5, 11, 10), ""),
        (nn.Conv3d(2, 5, 3), (3, 2, 7, 9, 8), (1, 5, 7, 6), "depth slice 2 of 0…4"),
        (nn.Conv3d(2, 5, 3), (2, 7, 9, 8), (1, 5, 7, 6), "depth slice 2 of 0…4"),
        (nn.Linear(6, 5), (3, 6), (1, 5, 1, 1), ""),
        (nn.Linear(6, 5), (6,), (1, 5, 1, 1), ""),
        (nn.MaxPool2d(2), (3, 2, 8, 8), (1, 2, 4, 4), ""),
    ],
    ids=lambda value: str(value) if isinstance(value, (nn.Module, tuple)) else "",
)
def test_outputs_of_every_dimension_are_drawn(
    module: nn.Module, x: tuple[int, ...], pixels: tuple[int, ...], view: str
) -> None:
    out = module(torch.rand(x)).detach()
    found = _reduce(out, module)
    assert found.planes is not None
    assert found.planes.pixels.shape == pixels
    assert (found.planes.view, found.planes.shape) == (view, tuple(out.shape))
    assert found.statistics is not None
    assert found.statistics.mean.shape == (pixels[1],)
    # Channels of either sign may cancel: the error is a part of them, not of their sum.
    mean = out.double().mean().item()
    assert found.statistics.mean.mean() == pytest.approx(mean, rel=1e-5, abs=1e-6)


def test_of_a_volume_the_middle_depth_slice_is_drawn() -> None:
    maps = torch.zeros(1, 1, 5, 2, 2)
    maps[0, 0, 2] = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    assert _planes(maps, nn.Conv3d(1, 1, 1)).pixels[0, 0].tolist() == [[0, 85], [170, 255]]


def test_tokens_have_numbers_for_each_channel_and_no_picture() -> None:
    tokens = torch.rand(2, 7, 5)
    found = _reduce(tokens, nn.LayerNorm(5))
    assert found.planes is None
    assert found.statistics is not None
    assert found.statistics.maximum.tolist() == tokens.amax((0, 1)).double().tolist()
    assert found.sample is not None
    assert found.sample.total == 70


def test_complex_maps_are_drawn_by_their_absolute_values() -> None:
    maps = torch.tensor([[[[3 + 4j, 0j, 5j, 1 + 0j]]]])
    found = _reduce(maps)
    assert found.planes is not None
    assert (found.planes.lo.item(), found.planes.hi.item()) == (0.0, 5.0)
    assert found.planes.pixels.ravel().tolist() == [255, 0, 255, 51]
    assert found.planes.view == "absolute values of complex numbers"


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2],
)
def test_maps_of_every_floating_type_are_reduced(dtype: torch.dtype) -> None:
    maps = (torch.arange(16.0).view(1, 1, 4, 4) - 8).to(dtype)
    found = _reduce(maps)
    assert found.planes is not None
    assert (found.planes.lo.item(), found.planes.hi.item()) == (-8.0, 7.0)
    assert found.statistics is not None
    assert found.statistics.mean.tolist() == [pytest.approx(maps.double().mean().item())]
    assert found.sample is not None
    assert found.sample.values.dtype == (np.float64 if dtype == torch.float64 else np.float32)


def test_a_float16_sum_does_not_overflow() -> None:
    maps = torch.full((1, 1, 64, 64), 60000.0, dtype=torch.float16)
    maps[0, 0, ::2] = 40000.0
    found = _reduce(maps).statistics
    assert found is not None
    assert found.mean.tolist() == [pytest.approx(50000.0)]
    assert found.std.tolist() == [pytest.approx(10000.0)]


def test_channels_last_maps_give_the_same_pixels() -> None:
    maps = torch.rand(2, 5, 9, 7)
    there = _planes(maps.to(memory_format=torch.channels_last), max_tile=4)
    assert np.array_equal(there.pixels, _planes(maps, max_tile=4).pixels)


# --- histogram samples


def test_a_small_tensor_is_sampled_whole_and_as_a_copy() -> None:
    tensor = torch.rand(4, 8, 16, 16)
    drawn = sample(tensor)
    tensor_before = tensor.clone()
    tensor.zero_()
    assert drawn.total == drawn.values.numel() == 8192
    assert torch.equal(drawn.values.sort().values, tensor_before.flatten().sort().values)


@pytest.mark.parametrize(
    "shape", [(8, 64, 32, 32), (1000, 300), (2, 3, 2**17), (1, 2048, 7, 7), (7, 1, 97, 101)]
)
def test_a_large_tensor_is_sampled_with_every_channel_in_its_share(shape: tuple[int, ...]) -> None:
    channel = torch.arange(shape[1]).view(1, -1, *[1] * (len(shape) - 2)).expand(shape).float()
    drawn = sample(channel.contiguous())
    assert drawn.total == channel.numel()
    assert min(drawn.total, SAMPLE_SIZE) / 6 < drawn.values.numel() <= SAMPLE_SIZE
    counts = torch.bincount(drawn.values.long(), minlength=shape[1])
    share = drawn.values.numel() / shape[1]
    assert (counts - share).abs().max() <= max(2, 0.2 * share)


def test_sampling_is_deterministic_and_draws_no_random_number() -> None:
    tensor = torch.rand(4, 16, 64, 64)
    states = (
        torch.get_rng_state(),
        random.getstate(),
        [*np.random.get_state()[1], np.random.get_state()[2]],
    )
    first, second = sample(tensor).values, sample(tensor).values
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert [*np.random.get_state()[1], np.random.get_state()[2]] == states[2]


def test_a_sample_of_a_large_tensor_has_its_distribution() -> None:
    tensor = torch.randn(4, 16, 64, 64)
    values = sample(tensor).values
    assert values.mean().item() == pytest.approx(0.0, abs=0.02)
    assert values.std().item() == pytest.approx(1.0, abs=0.02)


def test_a_sample_of_a_complex_tensor_is_of_its_absolute_values() -> None:
    assert sample(torch.tensor([3 + 4j, 0j])).values.tolist() == [5.0, 0.0]


def test_a_sample_carries_the_extremes_of_the_whole_tensor() -> None:
    maps = torch.rand(1, 3, 300, 300)
    maps[0, 1, 17, 23] = 50.0
    maps[0, 2, 5, 5] = torch.inf
    found = _reduce(maps).sample
    assert found is not None
    assert found.hi == 50.0
    assert found.lo == maps.min().item()
    alone = _reduce(torch.full((1, 2, 1, 2), torch.nan)).sample
    assert alone is not None
    assert np.isnan([alone.lo, alone.hi]).all()


def test_a_layer_whose_numbers_fail_is_told_of_and_left_out_alone() -> None:
    maps = torch.randn(2, 3, 8, 8)
    failed: list[tuple[str, type[Exception]]] = []
    sites = [Site(name, "Conv2d", position=n) for n, name in enumerate(("a", "b", "c"))]
    good = [Reducer()(site, "feature_maps", maps, CONV) for site in sites]
    numbers = good[1].statistics
    assert isinstance(numbers, PendingStatistics)
    torn = replace(numbers, parts=(maps[0, :, 0], maps[0, :, :, :0].flatten(1)))
    pending = [good[2], replace(good[1], statistics=torn), good[0]]
    found = joined(pending, lambda about, error: failed.append((about, type(error))))
    assert [measured.site.label for measured in found] == ["a", "c"]
    assert failed == [("b", ValueError)]
    for measured, alone in zip(found, (good[0], good[2]), strict=True):
        np.testing.assert_array_equal(measured.statistics.mean, alone.to_host().statistics.mean)  # type: ignore[union-attr]


def _pending(maps: Tensor, module: nn.Module = CONV, **options: Any) -> Pending:
    return Reducer(**options)(SITE, "feature_maps", maps, module)


@pytest.mark.parametrize("scale", ["channel", "layer", "locked"])
@pytest.mark.parametrize("max_tile", [None, 4])
@pytest.mark.parametrize("shape", [(1, 5, 9, 8), (1, 5, 3, 3), (1, 70, 9, 8), (3, 5, 9, 8)])
def test_extremes_that_are_known_already_change_no_plane(
    shape: tuple[int, ...], max_tile: int | None, scale: Any
) -> None:
    maps = torch.randn(shape)
    maps[0, 1] = 2.0
    pending = _pending(maps, max_tile=max_tile, scale=scale)
    drawn = pending.drawn
    assert drawn is not None
    assert drawn.counted == (shape[0] == 1)
    asked_again = _pending(maps, max_tile=max_tile, scale=scale)
    assert asked_again.drawn is not None
    asked_again = replace(asked_again, drawn=replace(asked_again.drawn, counted=False))
    here, there = pending.to_host().planes, asked_again.to_host().planes
    for name in ("pixels", "flat", "lo", "hi"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), strict=True)


def test_maps_of_one_sample_are_not_read_again_for_their_extremes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counting(maps: Any, axes: tuple[int, ...]) -> Any:
        asked.append(maps.shape)
        return finite_extremes(maps, axes)

    monkeypatch.setattr("fmapboard.render.quantize.finite_extremes", counting)
    one, two = torch.randn(1, 3, 8, 8), torch.randn(2, 3, 8, 8)
    for maps, max_tile in ((one, None), (two, None), (one, 4)):
        _planes(maps, max_tile=max_tile)
    assert asked == [(1, 3, 8, 8), (1, 3, 4, 4)]


def test_a_value_that_is_not_finite_is_marked_in_the_map_of_one_sample() -> None:
    maps = torch.randn(1, 3, 8, 8)
    maps[0, 1, 2, 3] = torch.nan
    maps[0, 2] = torch.inf
    planes = _planes(maps)
    assert planes.marks is not None
    assert planes.marks[0, 1, 2, 3] == Mark.NAN
    assert (planes.marks[0, 2] == Mark.POSITIVE_INFINITY).all()
    assert np.isfinite([planes.lo, planes.hi]).all()


@pytest.mark.parametrize(
    ("maps", "module"),
    [
        (torch.randn(1, 2, 5, 8, 8), nn.Conv3d(1, 1, 1)),  # a slice is drawn
        (torch.randn(1, 17, 8), nn.LayerNorm(8)),  # of the tokens, the patches are drawn
        (torch.randn(2, 3, 8, 8), CONV),
    ],
)
def test_where_less_is_drawn_than_counted_the_planes_have_extremes_of_their_own(
    maps: Tensor, module: nn.Module
) -> None:
    pending = _pending(maps, module, tokens_are_patches=True)
    assert pending.drawn is not None
    assert not pending.drawn.counted
    planes = pending.to_host().planes
    assert planes is not None
    np.testing.assert_array_equal(planes.lo[0], pending.drawn.maps[0].amin((1, 2)).numpy())
