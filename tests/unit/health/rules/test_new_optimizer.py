"""An optimizer that is made anew at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from check_records import LAST, record
from output_facts import OUTPUT

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import NewOptimizerCheck

ANEW = [("Adam",)] * LAST


def found(
    new: Sequence[tuple[str, ...]], losses: Sequence[float | None] = (None,) * LAST
) -> list[Finding]:
    facts = [
        TrainingFacts(
            optimizers=("Adam",), new_optimizers=names, outputs=(replace(OUTPUT, loss=loss),)
        )
        for names, loss in zip(new, losses, strict=False)
    ]
    return list(NewOptimizerCheck()(record(facts=facts)))


def test_it_is_a_note_and_a_warning_if_the_loss_is_known_to_stay() -> None:
    (note,) = found(ANEW)
    assert (note.class_, note.since_step, note.value) == ("note", 10, LAST - 1)
    assert note.message == (
        "Adam steps for the first time at each of 7 logged steps after the first, since step 10"
    )
    assert [one.class_ for one in found(ANEW, [2.3] * LAST)] == ["warning"]
    assert [one.class_ for one in found(ANEW, [2.3, *[1.0] * (LAST - 1)])] == ["note"]


@pytest.mark.parametrize(("steps", "count"), [(3, 0), (4, 1)])
def test_fewer_than_four_logged_steps_are_too_few(steps: int, count: int) -> None:
    assert len(found(ANEW[:steps])) == count


def test_an_optimizer_that_goes_on_once_or_is_made_at_the_first_step_is_none() -> None:
    assert found([("Adam",), *[()] * (LAST - 1)]) == []
    assert found([*ANEW[:-1], ()]) == []
