"""Outputs of every rank, dtype and memory format are reduced."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reduced_maps import CALL, planes_of, reduced
from torch import nn

from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer

ROWS = "one row of pixels per channel, one column per position"


@pytest.mark.parametrize(
    ("module", "x", "pixels", "view"),
    [
        (nn.Conv1d(2, 5, 3), (3, 2, 9), (1, 5, 1, 7), ROWS),
        (nn.Conv1d(2, 5, 3), (2, 9), (1, 5, 1, 7), ROWS),
        (nn.ConvTranspose1d(2, 5, 3), (3, 2, 9), (1, 5, 1, 11), ROWS),
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
    found = reduced(out, module)
    assert found.planes is not None
    assert found.planes.pixels.shape == pixels
    assert (found.planes.view, found.planes.shape) == (view, tuple(out.shape))
    assert found.planes.layout == ("rows" if view == ROWS else "tiles")
    assert found.statistics is not None
    assert found.statistics.mean.shape == (pixels[1],)
    # Channels of either sign may cancel: the error is a part of them, not of their sum.
    mean = out.double().mean().item()
    assert found.statistics.mean.mean() == pytest.approx(mean, rel=1e-5, abs=1e-6)


def test_the_middle_depth_slice_of_a_volume_is_drawn() -> None:
    maps = torch.zeros(1, 1, 5, 2, 2)
    maps[0, 0, 2] = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    assert planes_of(maps, nn.Conv3d(1, 1, 1)).pixels[0, 0].tolist() == [[0, 85], [170, 255]]


@pytest.mark.parametrize(
    ("depth", "value", "view"),
    [
        (None, 2, "depth slice 2 of 0…4"),
        (0, 0, "depth slice 0 of 0…4"),
        (4, 4, "depth slice 4 of 0…4"),
        (7, 4, "depth slice 4 of 0…4 (the last one: there is no slice 7)"),
    ],
)
def test_depth_chooses_the_slice_and_the_view_says_which_one_is_drawn(
    depth: int | None, value: int, view: str
) -> None:
    maps = torch.arange(5.0)[:, None, None].expand(1, 1, 5, 2, 3)
    planes = planes_of(maps, nn.Conv3d(1, 1, 1), depth=depth)
    assert (planes.lo.item(), planes.view) == (value, view)


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_recurrent_layer_has_a_row_per_channel_and_a_column_per_time_step(
    batch_first: bool,
) -> None:
    module = nn.LSTM(3, 4, batch_first=batch_first)
    with torch.no_grad():
        out = module(torch.rand((2, 9, 3) if batch_first else (9, 2, 3)))[0]
    found = reduced(out, module, max_tile=None)
    first = out[0] if batch_first else out[:, 0]  # [L, C] of the first sample
    assert found.planes is not None
    assert (found.planes.layout, found.planes.pixels.shape) == ("rows", (1, 4, 1, 9))
    assert found.planes.hi[0].tolist() == first.amax(0).double().tolist()


def test_tokens_are_drawn_as_rows_only_in_a_model_without_2d_convolutions() -> None:
    tokens, norm = torch.rand(2, 9, 5), nn.LayerNorm(5)
    reduce = Reducer(sequences=Sequences.of(nn.Sequential(nn.Embedding(3, 5), norm)))
    planes = reduce(CALL, "feature_maps", tokens, norm).to_host().planes
    assert planes is not None
    assert (planes.layout, planes.pixels.shape) == ("rows", (1, 5, 1, 9))
    for other, shape, layout in (
        (nn.Conv2d(3, 5, 1), (1, 5, 3, 3), "tiles"),
        (nn.Conv1d(3, 5, 1), (1, 5, 1, 9), "rows"),
    ):
        reduce = Reducer(sequences=Sequences.of(nn.Sequential(other, norm)))
        planes = reduce(CALL, "feature_maps", tokens, norm).to_host().planes
        assert planes is not None
        assert (planes.pixels.shape, planes.layout) == (shape, layout)
    both = nn.Sequential(nn.Conv1d(3, 5, 1), nn.Conv2d(3, 5, 1), norm)
    reduce = Reducer(sequences=Sequences.of(both))
    assert reduce(CALL, "feature_maps", tokens, norm).to_host().planes is None


def test_tokens_have_statistics_per_channel_and_no_picture() -> None:
    tokens = torch.rand(2, 7, 5)
    found = reduced(tokens, nn.LayerNorm(5))
    assert found.planes is None
    assert found.statistics is not None
    assert found.statistics.maximum.tolist() == tokens.amax((0, 1)).double().tolist()
    assert found.sample is not None
    assert found.sample.total == 70


def test_complex_maps_are_drawn_by_their_absolute_values() -> None:
    maps = torch.tensor([[[[3 + 4j, 0j, 5j, 1 + 0j]]]])
    found = reduced(maps)
    assert found.planes is not None
    assert (found.planes.lo.item(), found.planes.hi.item()) == (0.0, 5.0)
    assert found.planes.pixels.ravel().tolist() == [255, 0, 255, 51]
    assert found.planes.view == "absolute values of complex numbers"


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2],
)
def test_maps_of_every_floating_point_dtype_are_reduced(dtype: torch.dtype) -> None:
    maps = (torch.arange(16.0).view(1, 1, 4, 4) - 8).to(dtype)
    found = reduced(maps)
    assert found.planes is not None
    assert (found.planes.lo.item(), found.planes.hi.item()) == (-8.0, 7.0)
    assert found.statistics is not None
    assert found.statistics.mean.tolist() == [pytest.approx(maps.double().mean().item())]
    assert found.sample is not None
    assert found.sample.values.dtype == (np.float64 if dtype == torch.float64 else np.float32)


def test_a_float16_sum_does_not_overflow() -> None:
    maps = torch.full((1, 1, 64, 64), 60000.0, dtype=torch.float16)
    maps[0, 0, ::2] = 40000.0
    found = reduced(maps).statistics
    assert found is not None
    assert found.mean.tolist() == [pytest.approx(50000.0)]
    assert found.std.tolist() == [pytest.approx(10000.0)]


def test_channels_last_maps_give_the_same_pixels() -> None:
    maps = torch.rand(2, 5, 9, 7)
    there = planes_of(maps.to(memory_format=torch.channels_last), max_tile=4)
    assert np.array_equal(there.pixels, planes_of(maps, max_tile=4).pixels)
