"""Activations that grow as the training goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import LAST, from_step, record
from output_facts import OUTPUT

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import ExplodingCheck


def test_magnitudes_that_grow_over_the_steps() -> None:
    (found,) = ExplodingCheck()(record(columns={"maximum": {2: from_step(4, 1000.0, 1.0)}}))
    assert (found.layer, found.since_step, found.value) == ("conv2", 40, 1000.0)
    assert found.message.endswith("(1,000-fold or more since step 40)")
    shrunk = {"maximum": {2: [1.0, 1.0, 1e3, 1e3, *[1.0] * (LAST - 4)]}}
    (found,) = ExplodingCheck()(record(columns=shrunk))
    assert found.message.endswith("(1,000-fold or more from step 20 to 30)")
    grown = {"maximum": {2: from_step(4, 999.0, 1.0)}}
    assert ExplodingCheck()(record(columns=grown)) == []


def test_a_layer_that_starts_near_zero_may_grow_to_the_magnitudes_of_the_others() -> None:
    tiny = {2: [1e-3] * LAST}
    columns = {"maximum": {2: from_step(4, 6.5, 4e-4)}, "minimum": tiny}
    assert ExplodingCheck()(record(columns=columns)) == []
    columns = {"maximum": {2: from_step(4, 1000.0, 4e-4)}, "minimum": tiny}
    (found,) = ExplodingCheck()(record(columns=columns))
    assert found.value == pytest.approx(1000.0)


def test_growth_from_almost_zero_to_small_values_is_silent() -> None:
    for later, is_found in ((49.0, False), (50.0, True)):
        columns = {
            "maximum": {i: from_step(1, later, 1e-9) for i in range(6)},
            "minimum": {i: [0.0] * LAST for i in range(6)},
        }
        assert len(ExplodingCheck()(record(columns=columns))) == is_found
    zero = {"maximum": {2: from_step(1, 50.0, 0.0)}, "minimum": {2: [0.0] * LAST}}
    assert ExplodingCheck()(record(columns=zero)) == []


def test_growth_is_silent_if_the_loss_falls() -> None:
    columns = {"maximum": {2: from_step(4, 1000.0, 1.0)}}
    falls = [2.3, 1.9, 1.5, 1.2, 0.9, 0.7, 0.5, 0.3]
    for losses, is_found in ((falls, 0), ([2.3] * LAST, 1)):
        facts = [TrainingFacts(outputs=(replace(OUTPUT, loss=loss),)) for loss in losses]
        assert len(ExplodingCheck()(record(columns=columns, facts=facts))) == is_found
