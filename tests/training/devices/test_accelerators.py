"""On accelerators (simulated ones), also without float64, the records are those of the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from device_training import (
    STEPS,
    assert_same_records,
    batch_with_nonfinite_values,
    logged,
    offset_batch,
    on_device,
    plain_batch,
)
from reducers import reducer_of
from simulated_device import moved, simulated_device
from torch import Tensor, nn

from fmapboard.measure.reducer import Reducer
from fmapboard.records import KernelShape, LayerCall, TensorKind


@pytest.mark.each_once
@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("batch", [plain_batch, offset_batch])
def test_every_step_is_logged_with_the_records_of_the_cpu(
    kind: str, batch: Callable[[], Tensor]
) -> None:
    steps, _ = on_device(kind, batch())
    expected = logged("cpu", batch())
    assert [step.step for step in steps] == list(range(STEPS))
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_nonfinite_values_are_flagged_at_their_first_step_and_counted_at_the_next(
    kind: str,
) -> None:
    steps, _ = on_device(kind, batch_with_nonfinite_values())
    expected = logged("cpu", batch_with_nonfinite_values())
    for own, other in zip(steps[0].statistics, expected[0].statistics, strict=True):
        assert own.statistics is not None
        assert other.statistics is not None
        np.testing.assert_array_equal(own.statistics.nonfinite, other.statistics.nonfinite)
        assert not own.statistics.counted
    text = steps[0].texts["fmapboard/first_nonfinite"]
    assert text.startswith("step 0: first non-finite values: at least 8 NaN of ")
    records = [r for r in steps[0].records if r.tag.startswith(("fmapboard/", "fmapboard_first/"))]
    headers = [json.loads(record.blobs[0]) for record in records]
    assert all(picture["counted"] is False for h in headers for picture in h["pictures"][:1])
    assert_same_records(steps[1], expected[1])
    assert all(own.statistics.counted for own in steps[1].statistics if own.statistics)


def test_a_tensor_that_is_finite_again_is_read_quickly_again() -> None:
    layer = nn.Conv2d(3, 8, 3)
    call = LayerCall("conv", "Conv2d", KernelShape((8, 3, 3, 3)))
    finite = torch.randn(2, 8, 12, 12, generator=torch.Generator().manual_seed(0))
    broken = finite.clone()
    broken[0, 0, 0, 0] = torch.nan
    unsettled: set[tuple[str, TensorKind]] = set()
    reduce, launches = Reducer(unsettled=unsettled), []
    with simulated_device() as machine:
        for maps in (finite, broken, broken, finite, finite):
            there, before = moved(maps, "cuda"), machine.launches
            pending = reduce(call, "feature_maps", there, layer)
            launches.append(machine.launches - before)
            pending.to_host()
    quick, _, exact, *_ = launches
    assert launches == [quick, quick, exact, exact, quick]
    assert quick < exact


@pytest.mark.each_once
@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize(
    "options", [{"max_tile": 7}, {"max_tile": 7, "scale": "layer"}, {"max_tile": 7, "samples": 3}]
)
def test_maps_that_are_averaged_on_the_device_are_drawn_as_on_the_cpu(
    kind: str, options: dict[str, Any]
) -> None:
    steps, _ = on_device(kind, plain_batch(), **options)
    for step, other in zip(steps, logged("cpu", plain_batch(), **options), strict=True):
        assert step.pictures[0].samples[0].pixels.shape == other.pictures[0].samples[0].pixels.shape
        assert_same_records(step, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_maps_of_16_bit_types_are_read_and_sent_as_they_are(dtype: torch.dtype) -> None:
    """The model's own arithmetic is the CPU's, so the same maps arrive, rounded by the model."""
    maps = torch.randn(2, 8, 12, 12, generator=torch.Generator().manual_seed(0)).to(dtype)
    maps[0, 3] = 2.0
    call = LayerCall("conv", "Conv2d", KernelShape((8, 3, 3, 3)))
    layer = nn.Conv2d(3, 8, 3)
    for options in ({}, {"max_tile": 5}):
        plain = reducer_of(**options)(call, "feature_maps", maps, layer).to_host()
        with simulated_device():
            there = reducer_of(**options, unsettled=set())
            pending = there(call, "feature_maps", moved(maps, "cuda"), layer)
            assert pending.drawn is not None
            averaged = pending.drawn.block > 1
            assert pending.drawn.maps.dtype == (torch.float32 if averaged else dtype)
            measured = pending.to_host()
        assert measured.planes is not None
        assert plain.planes is not None
        np.testing.assert_array_equal(measured.planes.pixels, plain.planes.pixels)
        np.testing.assert_array_equal(measured.planes.flat, plain.planes.flat)
        np.testing.assert_array_equal(measured.planes.lo, plain.planes.lo)
        for name in ("minimum", "maximum", "mean", "std"):
            ours, theirs = (getattr(m.statistics, name) for m in (measured, plain))
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
