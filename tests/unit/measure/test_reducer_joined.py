"""Statistics of many tensors computed together equal those of each alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fmapboard.measure.statistics
from fmapboard.measure.reducer import Reducer, joined
from fmapboard.measure.statistics import PendingStatistics, finalize, statistics
from fmapboard.records import LayerCall, Statistics


def _of_every_kind() -> list[PendingStatistics]:
    torch.manual_seed(0)
    gaps = torch.randn(4, 3, 8, 9)
    gaps[1, 2, 0, 0], gaps[3, 1, 2, 2] = torch.nan, -torch.inf
    level = torch.randn(4, 5, 8, 9)
    level[2] += 1000.0
    level[:, 1] = 7.0
    relu = torch.randn(4, 6, 8, 9).relu()
    relu[:, 3:5] = 0.0
    single = torch.full((1, 2, 1, 1), 3.0)
    randoms = [torch.randn(4, 2, 40, 40), torch.randn(16, 7, 3, 3)]
    maps = [level, gaps, *randoms, single, level + 1e4]
    read = [statistics(one) for one in (*maps, torch.randn(4, 3, 8, 8, dtype=torch.float64) * 1e9)]
    few = relu[:2]
    read += [statistics(one, 0.0, moments=False) for one in (relu, few)]
    return [*read, statistics(single, 3.0), statistics(relu[:1], 0.0), statistics(gaps, 0.0)]


@pytest.mark.parametrize("seed", range(4))
def test_statistics_computed_together_equal_those_computed_alone(seed: int) -> None:
    pending = _of_every_kind()
    assert {len(one.parts) for one in pending} == {2, 3, 4, 7}
    order = np.random.default_rng(seed).permutation(len(pending))
    together = finalize([pending[n] for n in order])
    for n, found in zip(order, together, strict=True):
        alone = pending[n].to_host()
        for name in (field.name for field in fields(Statistics)):
            here, there = getattr(found, name), getattr(alone, name)
            np.testing.assert_array_equal(here, there, err_msg=f"{name} of {n}", strict=True)
            assert (here is None) == (there is None)


@pytest.fixture
def joint(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tensors in each joint computation."""
    counts: list[int] = []
    real = fmapboard.measure.statistics._plane_moments

    def counting(read: Any, sizes: Any) -> Any:
        counts.append(len(read))
        return real(read, sizes)

    monkeypatch.setattr(fmapboard.measure.statistics, "_plane_moments", counting)
    return counts


def test_tensors_that_were_read_in_the_same_way_are_finalized_together(joint: list[int]) -> None:
    shapes = [(4, 3, 8, 9), (4, 5, 16, 16), (4, 1, 80, 80)]
    layer_call, module = LayerCall("conv", "Conv2d"), nn.Conv2d(1, 1, 1)
    levels = (0.0, 1e4, 0.0)
    convs = [
        Reducer()(layer_call, "feature_maps", torch.randn(shape) + level, module)
        for shape, level in zip(shapes, levels, strict=True)
    ]
    relu = LayerCall("relu", "ReLU", pictures=False, floor=0.0)
    relus = [
        Reducer()(relu, "feature_maps", torch.randn(shape).relu(), nn.ReLU()) for shape in shapes
    ]
    found = joined([*convs, *relus], pytest.fail)  # type: ignore[arg-type]
    assert joint == [3, 3]
    assert len(found) == 2  # the last of each layer call


@pytest.mark.parametrize(("max_planes", "expected"), [(59, [1] * 5), (60, [2, 2, 1]), (90, [3, 2])])
def test_no_more_planes_than_the_bound_are_finalized_together(
    max_planes: int, expected: list[int], joint: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fmapboard.measure.statistics, "MAX_PLANES", max_planes)
    many = [statistics(torch.randn(10, 3, 9, 9)) for _ in range(5)]
    together = finalize(many)
    assert joint == expected
    for found, one in zip(together, many, strict=True):
        np.testing.assert_array_equal(found.mean, one.to_host().mean)


def test_a_second_measurement_without_planes_leaves_the_first_as_it_is() -> None:
    reduce, layer, call = Reducer(), nn.Linear(9, 5), LayerCall("3", "Linear")
    batch = reduce(call, "feature_maps", torch.randn(2, 3, 5), layer)  # three tokens are no square
    probe = reduce(call, "feature_maps", torch.randn(1, 3, 5), layer, numbers=False)
    (found,) = joined([batch, probe], lambda *_: None)
    assert found.planes is None
    assert found.statistics is not None
    assert found.sample is not None
