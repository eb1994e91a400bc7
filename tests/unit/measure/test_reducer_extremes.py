"""Extremes already counted for the statistics are reused for the planes that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from reduced_maps import CALL, CONV, planes_of, random_maps, record_extremes
from reducers import reducer_of
from torch import Tensor, nn

from fmapboard.measure.reducer import PendingMeasurement
from fmapboard.records import PixelMark


def _pending(maps: Tensor, module: nn.Module = CONV, **options: Any) -> PendingMeasurement:
    return reducer_of(**options)(CALL, "feature_maps", maps, module)


@pytest.mark.parametrize("scale", ["channel", "layer", "locked"])
@pytest.mark.parametrize("max_tile", [None, 4])
@pytest.mark.parametrize("shape", [(1, 5, 9, 8), (1, 5, 3, 3), (1, 70, 9, 8), (3, 5, 9, 8)])
def test_reusing_known_extremes_does_not_change_the_planes(
    shape: tuple[int, ...], max_tile: int | None, scale: Any
) -> None:
    maps = torch.randn(shape)
    maps[0, 1] = 2.0
    pending = _pending(maps, max_tile=max_tile, scale=scale)
    drawn = pending.drawn
    assert drawn is not None
    assert drawn.counted == (shape[0] == 1)
    uncounted = _pending(maps, max_tile=max_tile, scale=scale)
    assert uncounted.drawn is not None
    uncounted = uncounted._replace(drawn=uncounted.drawn._replace(counted=False))
    here, there = pending.to_host().planes, uncounted.to_host().planes
    for name in ("pixels", "flat", "lo", "hi"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), strict=True)


def test_maps_of_one_sample_are_not_read_again_for_their_extremes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = record_extremes(monkeypatch)
    one, two = torch.randn(1, 3, 8, 8), torch.randn(2, 3, 8, 8)
    for maps, max_tile in ((one, None), (two, None), (one, 4)):
        planes_of(maps, max_tile=max_tile)
    assert read == [(1, 3, 8, 8), (1, 3, 4, 4)]


def test_a_non_finite_value_is_marked_in_the_map_of_one_sample() -> None:
    maps = torch.randn(1, 3, 8, 8)
    maps[0, 1, 2, 3] = torch.nan
    maps[0, 2] = torch.inf
    planes = planes_of(maps)
    assert planes.marks is not None
    assert planes.marks[0, 1, 2, 3] == PixelMark.NAN
    assert (planes.marks[0, 2] == PixelMark.POSITIVE_INFINITY).all()
    assert np.isfinite([planes.lo, planes.hi]).all()


@pytest.mark.parametrize(
    ("maps", "module"),
    [
        (random_maps(1, 2, 5, 8, 8), nn.Conv3d(1, 1, 1, device="meta")),  # a slice is drawn
        (random_maps(1, 17, 8), nn.LayerNorm(8)),  # the patch tokens are drawn
        (random_maps(2, 3, 8, 8), CONV),
    ],
)
def test_planes_have_their_own_extremes_if_only_a_part_of_the_maps_is_drawn(
    maps: Tensor, module: nn.Module
) -> None:
    pending = _pending(maps, module, tokens_are_patches=True)
    assert pending.drawn is not None
    assert not pending.drawn.counted
    planes = pending.to_host().planes
    assert planes is not None
    np.testing.assert_array_equal(planes.lo[0], pending.drawn.maps[0].amin((1, 2)).numpy())
