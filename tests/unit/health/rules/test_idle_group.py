"""A parameter group of the optimizer that never gets a gradient."""

from __future__ import annotations

from collections.abc import Sequence

from check_records import LAST, STEPS, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import IdleGroupCheck

HEAD = ("head.weight", "head.bias")


def found(groups: Sequence[tuple[str, ...]], steps: Sequence[int] = STEPS) -> list[Finding]:
    facts = [TrainingFacts(no_gradient=names, idle_group=names) for names in groups]
    return list(IdleGroupCheck()(record(facts=facts, steps=steps)))


def test_it_is_a_note_that_names_the_parameters() -> None:
    (one,) = found([HEAD] * LAST)
    assert (one.class_, one.since_step, one.parameters) == ("note", 0, HEAD)
    assert one.message == (
        "the optimizer has a parameter group of its own for `head.weight`, `head.bias`, which had "
        "no gradient at any of 8 logged steps"
    )


def test_one_gradient_few_steps_or_a_short_run_is_silent() -> None:
    assert found([*[HEAD] * (LAST - 1), ()]) == []
    assert found([HEAD] * 3) == []
    assert found([HEAD] * LAST, range(LAST)) == []
