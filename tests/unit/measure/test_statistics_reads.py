"""Per-channel statistics do not depend on how maps are read: in parts or across samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy_statistics import assert_right
from torch import Tensor
from torch_threads import torch_threads

import fmapboard.measure.statistics
from fmapboard.measure.statistics import statistics
from fmapboard.records import Statistics


@pytest.mark.parametrize(("nbytes", "samples"), [(1, [1] * 5), (2400, [2, 2, 1]), (1 << 30, [5])])
def test_the_samples_of_a_large_batch_are_read_in_parts(
    nbytes: int, samples: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = torch.randn(5, 3, 9, 11)
    whole = statistics(maps).parts
    monkeypatch.setattr(fmapboard.measure.statistics, "_CACHED", nbytes)
    read = count_calls(monkeypatch, "_norms")
    parts = statistics(maps).parts
    assert read == samples
    for part, known in zip(parts, whole, strict=True):
        assert torch.equal(part, known)


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("nbytes", [32 * 8 * 2, 16 * 40 * 4, 2**19])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, 0.0, 7.0])
def test_tokens_are_read_in_runs_of_all_samples(
    nbytes: int, channels: int, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fmapboard.measure.statistics, "_CACHED_TOKENS", nbytes)
    monkeypatch.setattr(fmapboard.measure.statistics, "_FEWEST_TOKENS", 32)
    tokens = torch.randn(5, 601, channels)  # [N, T, C]
    tokens[..., 1] = 1e3 + tokens[..., 1] * 1e-2
    tokens[4, 600, 2] = value
    assert_right(tokens.movedim(2, 1))
    assert_right(tokens[:, :500].movedim(2, 1))
    assert_right(tokens.double().movedim(2, 1))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 7.0])
def test_small_planes_are_read_across_samples(value: float) -> None:
    maps = torch.randn(6, 4, 7, 7)
    assert [part.shape[0] for part in statistics(maps).parts] == [49] * 4
    assert [part.shape[0] for part in statistics(maps[:2]).parts] == [2] * 4
    assert_right(maps)
    maps[4, 2, 6, 6] = value
    assert_right(maps)
    assert_right(maps.to(memory_format=torch.channels_last))


def test_a_large_batch_of_small_planes_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    across = count_calls(monkeypatch, "_read_across")
    maps = torch.randn(16, 4, 5, 5)
    statistics(maps)
    monkeypatch.setattr(fmapboard.measure.statistics, "_CACHED", maps.nbytes // 2 - 1)
    assert_right(maps)
    assert across == [16]


@pytest.mark.parametrize("shape", [(8, 3, 7, 7), (40, 5, 1, 1), (5, 2, 2, 3), (1025, 2, 2, 2)])
@pytest.mark.parametrize("mean", [0.0, 1e4, -3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_planes_around_any_mean_have_numpys_statistics(
    shape: tuple[int, ...], mean: float, dtype: torch.dtype
) -> None:
    maps = torch.randn(shape, dtype=dtype) * 0.02 + mean
    maps[:, 1] += torch.arange(shape[0])[:, None, None]  # each plane varies little, the batch much
    assert_right(maps)
    maps[:, 0] = 0.5
    assert assert_right(maps).constant.tolist()[:2] == [True, False]


def test_statistics_are_bitwise_the_same_for_any_number_of_threads() -> None:
    maps = torch.randn(8, 16, 96, 96)
    alone = statistics(maps).parts
    with torch_threads(2):
        together = statistics(maps).parts
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_only_planes_that_hardly_vary_are_checked_for_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = count_calls(monkeypatch, "_cancels")
    for shape in ((8, 4, 7, 7), (2, 4, 100, 90), (1, 3, 5, 5)):
        statistics(torch.randn(shape))
    assert checks == []
    statistics(torch.zeros(8, 4, 7, 7))
    assert checks == [49]


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """First dimension of the first argument of each call of a function of `measure.statistics`."""
    sizes: list[int] = []
    real = getattr(fmapboard.measure.statistics, name)

    def counted(first: Any, *others: Any) -> Any:
        sizes.append(first.shape[0])
        return real(first, *others)

    monkeypatch.setattr(fmapboard.measure.statistics, name, counted)
    return sizes


# --- of activations, only the extremes are read


def _of_relu(maps: Tensor, floor: float = 0.0) -> Statistics:
    return statistics(maps, floor, moments=False).to_host()


@pytest.mark.parametrize("size", [(5, 5), (12, 12)])
@pytest.mark.parametrize("raised", [0, 1, 5, 9])
def test_the_extremes_of_an_activation_are_found_in_any_sample(
    raised: int, size: tuple[int, int]
) -> None:
    maps = torch.randn(5, 10, *size).relu()
    maps[0, :raised] += 0.5
    maps[1:, 2] += 0.25
    maps[:, 9] = 0.0
    found = _of_relu(maps)
    assert found.minimum.tolist() == maps.amin((0, 2, 3)).tolist()
    assert found.maximum.tolist() == maps.amax((0, 2, 3)).tolist()
    assert found.dead is not None
    assert found.dead.tolist() == [False] * 9 + [True]


def test_a_channel_that_is_dead_only_in_the_first_sample_is_not_dead() -> None:
    maps = torch.zeros(3, 2, 4, 4)
    maps[2, 1, 3, 3] = 1.0
    found = _of_relu(maps)
    assert found.dead is not None
    assert found.dead.tolist() == [True, False]
    assert found.constant.tolist() == [True, False]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("sample", [0, 4])
def test_non_finite_values_of_an_activation_are_found(value: float, sample: int) -> None:
    maps = torch.randn(5, 3, 6, 6).relu()
    maps[sample, 1, 2, 2] = value
    found = _of_relu(maps)
    assert found.nonfinite.tolist() == [False, True, False]
    assert np.isfinite(found.maximum).all()
