"""Huge activations at the start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from check_records import LAST, from_step, record

from fmapboard.checks import NotRecorded, RunRecord
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
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


def test_the_first_output_counts_too_unless_the_loss_is_known() -> None:
    output = OutputFacts("", (16, 8), low=-200.0, high=250.0, classes=8)
    (found,) = LargeActivationsCheck()(record(facts=[TrainingFacts(outputs=(output,))] * LAST))
    assert (found.layer, found.since_step, found.value) == (None, 0, 200.0)
    assert found.message == "magnitudes in the output are up to 200 at step 0"
    for changes in (
        {"low": -199.0}, {"high": 199.0}, {"shape": (16, 1)}, {"shape": (16, 8, 4)},
        {"low": -np.inf, "high": np.inf}, {"loss": 90.0},
    ):  # fmt: skip
        other = replace(output, **changes)  # type: ignore[arg-type]  # one of several fields
        assert LargeActivationsCheck()(record(facts=[TrainingFacts(outputs=(other,))] * LAST)) == []
    later = [TrainingFacts(outputs=(replace(output, low=-1.0),)), TrainingFacts(outputs=(output,))]
    assert LargeActivationsCheck()(record(facts=later)) == []


def test_without_layers_large_activations_are_not_recorded() -> None:
    for check in (LargeActivationsCheck(), ExplodingCheck(), GrowingSignalCheck()):
        with pytest.raises(NotRecorded):
            check(RunRecord())
