"""Both rules of the update ratios: what is no update, and which weights count."""

from __future__ import annotations

import pytest
from check_records import LAST, Rules, layer, record, updates

from fmapboard.checks import NotRecorded
from fmapboard.health.rules import UpdatesTooLargeCheck


def test_a_warm_up_from_rate_zero_and_skipped_steps_are_silent() -> None:
    assert Rules("update_ratio")(record(scalars=updates([0.0, 1e-8, *[1e-3] * (LAST - 2)]))) == []
    assert Rules("update_ratio")(record(scalars=updates([0.0] * LAST))) == []
    assert Rules("update_ratio")(record(scalars=updates([float("nan")] * LAST))) == []


def test_the_median_over_the_weights_decides_and_biases_do_not_count() -> None:
    scalars = updates([1e-3] * LAST)
    scalars["update_ratio/conv0.weight"] = [5.0] * LAST
    biases = {f"update_ratio/conv{i}.bias": [9.0] * LAST for i in range(6)}
    linear = [layer(i, kernel_shape=None) for i in range(6)]
    assert Rules("update_ratio")(record(linear, scalars=biases)) == []
    scalars |= biases
    assert Rules("update_ratio")(record(scalars=scalars)) == []
    with pytest.raises(NotRecorded, match="update_ratio"):
        list(UpdatesTooLargeCheck()(record()))
