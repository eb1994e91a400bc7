"""Huge activations at the start."""

from __future__ import annotations

import pytest
from check_records import LAST, from_step, record

from fmapboard.checks import NotRecorded, RunRecord
from fmapboard.health.rules import ExplodingCheck, GrowingSignalCheck, LargeActivationsCheck


def test_magnitudes_that_no_healthy_network_starts_with() -> None:
    (found,) = LargeActivationsCheck()(record(columns={"maximum": {3: [1e4] * LAST}}))
    assert (found.layer, found.since_step, found.value) == ("conv3", 0, 1e4)
    assert "magnitudes in `conv3` are up to 10,000 since step 0" in found.message
    assert LargeActivationsCheck()(record(columns={"maximum": {3: [9.9e3] * LAST}})) == []
    (found,) = LargeActivationsCheck()(record(columns={"maximum": {3: from_step(3, 9e3, 1e4)}}))
    assert found.message.endswith("from step 0 to 20")
    lost = {"maximum": {3: [float("inf")] * LAST, 4: [float("nan")] * LAST}}
    assert LargeActivationsCheck()(record(columns=lost)) == []


def test_without_layers_large_activations_are_not_recorded() -> None:
    for check in (LargeActivationsCheck(), ExplodingCheck(), GrowingSignalCheck()):
        with pytest.raises(NotRecorded):
            check(RunRecord())
