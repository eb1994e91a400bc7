"""Measurements of an accelerator are reduced and joined without a change of what is logged."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from simulated_device import moved, simulated_device
from torch import Tensor, nn

from fmapboard.measure import packing
from fmapboard.measure.packing import pack, pack_samples, reduce_together
from fmapboard.measure.reducer import PendingMeasurement, Reducer, joined
from fmapboard.measure.sample import PendingSample
from fmapboard.measure.statistics import PendingStatistics
from fmapboard.model.tensors import tensors
from fmapboard.records import HeadNumbers, LayerCall, LayerMeasurement

SHAPES = [
    (4, 3, 8, 8),
    (4, 70, 5, 5),
    (4, 6),
    (2, 3, 40, 40),
    (1, 5, 6, 6),
    (4, 9, 7, 7),
    (2, 3, 300, 20),
]


def maps() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    found = [torch.randn(shape, generator=generator) for shape in SHAPES]
    found[1][3, 69, 4, 4] = torch.inf
    found[3] = found[3].bfloat16()
    return found


def reduced(given: list[Tensor]) -> list[PendingMeasurement]:
    reduce, layer = Reducer(unsettled=set()), nn.Conv2d(3, 3, 1)
    calls = [LayerCall(str(n), "Conv2d", position=n, pictures=n != 5) for n in range(len(given))]
    return [
        reduce(call, "feature_maps", tensor, layer if tensor.dim() > 2 else nn.Linear(6, 6))
        for call, tensor in zip(calls, given, strict=True)
    ]


def finalized(pending: Any) -> tuple[LayerMeasurement, ...]:
    return joined(pending, lambda label, error: pytest.fail(f"{label}: {error}"))


def assert_same(found: LayerMeasurement, expected: LayerMeasurement) -> None:
    assert found.shape == expected.shape
    for name in ("minimum", "maximum", "mean", "std", "nan", "positive_infinity", "constant"):
        own, other = getattr(found.statistics, name), getattr(expected.statistics, name)
        np.testing.assert_array_equal(own, other, err_msg=name)
    assert (found.planes is None) == (expected.planes is None)
    if found.planes is not None and expected.planes is not None:
        np.testing.assert_array_equal(found.planes.pixels, expected.planes.pixels)
    assert (found.sample is None) == (expected.sample is None)
    if found.sample is not None and expected.sample is not None:
        np.testing.assert_array_equal(found.sample.values, expected.sample.values)


@pytest.mark.parametrize(("large", "alone"), [(1, 40), (2000, 7), (2**30, 0)])
def test_measurements_that_were_reduced_together_and_packed_are_the_same(
    large: int, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LARGE", large)
    with simulated_device():
        pending = reduced([moved(tensor, "cuda") for tensor in maps()])
        expected = finalized(pending)
        reduce_together(pending)
        packed = pack(pending)
        found = finalized(packed.unpack())
    assert len(packed.alone) == alone
    for own, other in zip(found, expected, strict=True):
        assert_same(own, other)
    numbers = found[1].statistics
    assert numbers is not None
    assert numbers.nonfinite.tolist() == [False] * 69 + [True]


def test_numbers_of_heads_are_packed_like_the_others() -> None:
    arrays = len(fields(HeadNumbers))
    heads = torch.rand(arrays, 70, generator=torch.Generator().manual_seed(0))
    with simulated_device():
        pending = reduced([moved(tensor, "cuda") for tensor in maps()[:2]])
        pending[1] = pending[1]._replace(heads=moved(heads, "cuda"))
        packed = pack(pending)
        plain, found = finalized(packed.unpack())
    assert plain.heads is None
    assert found.heads is not None
    assert found.heads.entropy.tolist() == heads[0].tolist()
    assert found.heads.logit.tolist() == heads[1].tolist()
    assert found.heads.first.tolist() == heads[2].tolist()


def test_tensors_of_one_batch_size_share_the_launches_that_reduce_them() -> None:
    with simulated_device() as device:
        pending = reduced([moved(tensor, "cuda") for tensor in maps()])
        before = device.launches
        reduce_together(pending)
        # Batches of 4, of 2, and of 2 in bfloat16; for each end of a group: join, reduce, split.
        assert device.launches - before == 3 * 2 * 3
    parts = [part.statistics.parts for part in pending if part.statistics is not None]  # type: ignore[union-attr]  # pending
    assert [lo.dim() for lo, *_ in parts] == [1, 1, 1, 1, 2, 1, 1]


def test_measurements_before_the_first_are_left_as_they_are() -> None:
    with simulated_device():
        pending = reduced([moved(tensor, "cuda") for tensor in maps()])
        reduce_together(pending, 2)
    dims = [
        p.statistics.parts[0].dim() for p in pending if isinstance(p.statistics, PendingStatistics)
    ]
    assert dims == [2, 2, 1, 1, 2, 1, 1]


def test_a_search_for_tensors_finds_the_joined_ones_alone() -> None:
    with simulated_device():
        pending = reduced([moved(tensor, "cuda") for tensor in maps()])
        reduce_together(pending)
        held = len(tensors(pending))
        packed = pack(pending)
    assert held == 40
    assert [piece.dtype for piece in tensors(packed)] == [torch.float32, torch.bfloat16]


def test_samples_of_parameters_that_were_packed_are_the_same() -> None:
    with simulated_device():
        values = [moved(torch.arange(4.0) + n, "cuda") for n in range(3)]
        samples = {
            "a": (PendingSample(values[0], 40), PendingSample(values[1], 50)),
            "frozen": (PendingSample(values[2], 60), None),
        }
        packed = pack_samples(samples)
        assert len(tensors(packed)) == 1
        found = packed.unpack()
        (weight, gradient), (frozen, no_gradient) = found["a"], found["frozen"]
        assert gradient is not None
        assert no_gradient is None
        assert weight.to_host().values.tolist() == [0, 1, 2, 3]
        assert gradient.to_host().values.tolist() == [1, 2, 3, 4]
        assert frozen.to_host().values.tolist() == [2, 3, 4, 5]
        assert (weight.total, gradient.total, frozen.total) == (40, 50, 60)
