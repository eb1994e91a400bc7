"""On accelerators (simulated ones), also without float64, the records are those of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from device_training import (
    STEPS,
    assert_same_records,
    batch_with_nonfinite_values,
    logged,
    offset_batch,
    on_device,
    plain_batch,
)
from torch import Tensor


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("batch", [plain_batch, batch_with_nonfinite_values, offset_batch])
def test_every_step_is_logged_with_the_records_of_the_cpu(
    kind: str, batch: Callable[[], Tensor]
) -> None:
    steps, _ = on_device(kind, batch())
    expected = logged("cpu", batch())
    assert [step.step for step in steps] == list(range(STEPS))
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)
