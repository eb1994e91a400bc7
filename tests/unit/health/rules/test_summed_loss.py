"""A loss that is summed over the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import LAST, record
from output_facts import OUTPUT

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import SummedLossCheck


def found(*losses: float, factor: float | None = 32.0, optimizer: str = "SGD") -> list[Finding]:
    facts = []
    for loss in losses:
        output = replace(OUTPUT, loss=loss, factor=factor)
        facts.append(TrainingFacts(outputs=(output,), optimizers=(optimizer,)))
    return list(SummedLossCheck()(record(facts=facts)))


def test_a_summed_loss_that_stays_is_a_note_with_both_numbers() -> None:
    (one,) = found(*[2.3] * LAST)
    assert (one.class_, one.since_step, one.value) == ("note", 0, 32.0)
    assert one.message == (
        "the loss of the output is 32 times its mean per row: 73.6 instead of 2.3 at step 0"
    )


@pytest.mark.parametrize("factor", [None, 1.0, 0.25, 7.9])
def test_a_mean_or_what_is_divided_for_accumulation_is_none(factor: float | None) -> None:
    assert found(*[2.3] * LAST, factor=factor) == []


def test_a_sum_that_learns_or_that_the_optimizer_divides_again_is_silent() -> None:
    assert found(2.3, 2.0, 1.5, *[1.0] * (LAST - 3)) == []
    assert found(*[2.3] * LAST, optimizer="AdamW") == []
