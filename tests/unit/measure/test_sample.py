"""Values drawn for a histogram: deterministic, channels in proportion, with the extremes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from model_state import assert_unchanged, random_state
from reduced_maps import reduced

from fmapboard.measure.sample import SAMPLE_SIZE, sample


def test_a_small_tensor_is_sampled_completely_and_copied() -> None:
    tensor = torch.rand(4, 8, 16, 16)
    drawn = sample(tensor)
    tensor_before = tensor.clone()
    tensor.zero_()
    assert drawn.total == drawn.values.numel() == 8192
    assert torch.equal(drawn.values.sort().values, tensor_before.flatten().sort().values)


@pytest.mark.parametrize(
    "shape", [(8, 64, 32, 32), (1000, 300), (2, 3, 2**17), (1, 2048, 7, 7), (7, 1, 97, 101)]
)
def test_a_sample_of_a_large_tensor_holds_every_channel_in_proportion(
    shape: tuple[int, ...],
) -> None:
    channel = torch.arange(shape[1]).view(1, -1, *[1] * (len(shape) - 2)).expand(shape).float()
    drawn = sample(channel.contiguous())
    assert drawn.total == channel.numel()
    assert min(drawn.total, SAMPLE_SIZE) / 6 < drawn.values.numel() <= SAMPLE_SIZE
    counts = torch.bincount(drawn.values.long(), minlength=shape[1])
    share = drawn.values.numel() / shape[1]
    assert (counts - share).abs().max() <= max(2, 0.2 * share)


def test_sampling_is_deterministic_and_draws_no_random_numbers() -> None:
    tensor = torch.rand(4, 16, 64, 64)
    before = random_state()
    first, second = sample(tensor).values, sample(tensor).values
    assert torch.equal(first, second)
    assert_unchanged(before, random_state())


def test_a_sample_of_a_large_tensor_has_its_distribution() -> None:
    tensor = torch.randn(4, 16, 64, 64)
    values = sample(tensor).values
    assert values.mean().item() == pytest.approx(0.0, abs=0.02)
    assert values.std().item() == pytest.approx(1.0, abs=0.02)


def test_a_sample_of_a_complex_tensor_holds_absolute_values() -> None:
    assert sample(torch.tensor([3 + 4j, 0j])).values.tolist() == [5.0, 0.0]


def test_a_sample_carries_the_extremes_of_the_whole_tensor() -> None:
    maps = torch.rand(1, 3, 300, 300)
    maps[0, 1, 17, 23] = 50.0
    maps[0, 2, 5, 5] = torch.inf
    found = reduced(maps).sample
    assert found is not None
    assert found.hi == 50.0
    assert found.lo == maps.min().item()
    alone = reduced(torch.full((1, 2, 1, 2), torch.nan)).sample
    assert alone is not None
    assert np.isnan([alone.lo, alone.hi]).all()
