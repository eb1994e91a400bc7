"""The rows that are read of a large weight: which channels and inputs they cover."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor

from fmapboard.measure.balanced_rows import LENGTH, ROWS, balanced_rows
from fmapboard.measure.parameter_rows import rows_of

SHAPES = [
    (512, 4608), (256, 2304), (256, 1152), (128, 1152), (128, 576), (512, 256), (1000, 512),
    (768, 3072), (2048, 64), (127, 1000), (64, 1600), (97, 873), (144, 576),
]  # fmt: skip


def starts(outputs: int, values: int) -> list[int]:
    """Where in memory each row begins."""
    rows = balanced_rows(outputs, values)
    assert rows is not None
    groups, walk, length = rows.size
    assert length == LENGTH
    far, near, _ = rows.stride
    return [group * far + one * near for group in range(groups) for one in range(walk)]


@pytest.mark.parametrize(("outputs", "values"), SHAPES)
def test_each_channel_is_read_equally_often(outputs: int, values: int) -> None:
    found = starts(outputs, values)
    assert 2 * ROWS / 3 <= len(found) < 2 * ROWS
    assert min(found) >= 0
    assert max(found) + LENGTH <= outputs * values
    assert min(b - a for a, b in zip(sorted(found), sorted(found)[1:], strict=False)) >= LENGTH
    every = max(1, outputs // ROWS)
    counts = Counter(start // (every * values) for start in found)
    usual = max(counts.values())
    missing = usual * (outputs // every) - len(found)
    assert missing <= 0.05 * len(found)
    assert sum(count != usual for count in counts.values()) <= max(1, missing)


@pytest.mark.parametrize(("outputs", "values"), SHAPES)
def test_the_inputs_are_covered(outputs: int, values: int) -> None:
    covered = torch.zeros(values)
    for start in starts(outputs, values):
        first = start % values
        covered[first : first + LENGTH] += 1
    assert (covered > 0).float().mean() > 0.85 * min(1.0, float(covered.sum()) / values)
    tenths = torch.stack([part.mean() for part in covered.tensor_split(10)])
    assert tenths.std() / tenths.mean() < 0.35


def test_large_weights_of_many_channels_are_covered_evenly() -> None:
    found = starts(30_000, 768)
    tenths = Counter(start * 10 // (30_000 * 768) for start in found)
    assert set(tenths) == set(range(10))
    assert max(tenths.values()) - min(tenths.values()) <= 1


@pytest.mark.parametrize(
    ("outputs", "values"), [(3, 100_003), (5, 62_720), (90_000, 1), (4000, 20)]
)
def test_what_has_no_such_rows(outputs: int, values: int) -> None:
    assert balanced_rows(outputs, values) is None


def error(change: Tensor) -> float:
    rows = rows_of(change)
    assert rows is not None
    return abs(float(rows.square().mean() / change.square().mean()) ** 0.5 - 1)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("shape", [(512, 256, 1, 1), (512, 512, 3, 3), (128, 128, 3, 3)])
def test_one_output_may_make_up_most_of_an_update(
    shape: tuple[int, int, int, int], order: torch.memory_format
) -> None:
    generator = torch.Generator().manual_seed(0)
    errors = []
    for channel in range(0, shape[0], 7):
        change = torch.randn(shape, generator=generator).to(memory_format=order)
        change[channel] *= 40
        errors.append(error(change))
    # A channel that is read twice or never is off by 40 % or more.
    assert sum(one < 0.25 for one in errors) >= 0.95 * len(errors)


def test_weights_in_another_order_are_read_by_their_slowest_axis() -> None:
    expected = rows_of(torch.zeros(4608, 512))
    assert expected is not None
    for weight in (torch.zeros(4608, 512).t(), torch.zeros(1, 4608, 512)):
        found = rows_of(weight)
        assert found is not None
        assert found.stride() == expected.stride()
