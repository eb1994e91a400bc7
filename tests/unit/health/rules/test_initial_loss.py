"""A loss that starts far above that of guessing."""

from __future__ import annotations

import math
from dataclasses import replace

from check_records import record
from output_facts import OUTPUT, findings_of

from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.rules import InitialLossCheck


def test_a_first_loss_far_above_that_of_guessing() -> None:
    guessed = math.log(10)
    (found,) = findings_of(InitialLossCheck(), replace(OUTPUT, loss=2 * guessed), OUTPUT)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 2 * guessed)
    assert found.healthy == "near ln 10 = 2.3, that of guessing"
    assert findings_of(InitialLossCheck(), replace(OUTPUT, loss=4.6), OUTPUT) == []
    two = replace(OUTPUT, classes=2, loss=1.69)
    assert findings_of(InitialLossCheck(), two) == []
    assert len(findings_of(InitialLossCheck(), replace(two, loss=1.7))) == 1
    for changes in ({"kind": "BCE with logits"}, {"given": True}, {"loss": None}):
        assert findings_of(InitialLossCheck(), replace(OUTPUT, **{"loss": 9.0, **changes})) == []  # type: ignore[arg-type]
    unread = OutputFacts(name="", shape=(32, 10), rows=32)
    (found,) = findings_of(
        InitialLossCheck(), unread, replace(OUTPUT, held=HeldLoss(0, 9.0, 0.0)), OUTPUT
    )
    assert (found.since_step, found.value) == (0, 9.0)
    assert (
        findings_of(InitialLossCheck(), unread, replace(OUTPUT, held=HeldLoss(10, 9.0, 0.0))) == []
    )
    resumed = record(
        steps=[10, 20], facts=[TrainingFacts(outputs=(replace(OUTPUT, loss=9.0),))] * 2
    )
    assert list(InitialLossCheck()(resumed)) == []


def test_a_cosine_head_that_soon_answers_better_than_by_guessing_is_silent() -> None:
    guessed = math.log(10)
    for last, is_found in ((0.49 * guessed, 0), (0.51 * guessed, 1)):
        every = (replace(OUTPUT, loss=14.0), OUTPUT, replace(OUTPUT, loss=last))
        unread = replace(OUTPUT, loss=None)
        assert len(findings_of(InitialLossCheck(), *every, unread)) == is_found
