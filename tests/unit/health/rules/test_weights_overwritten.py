"""Weights that other code changes between two steps of the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from check_records import LAST, record
from output_facts import OUTPUT

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import WeightsOverwrittenCheck

STAYS = [2.3] * LAST


def found(
    losses: Sequence[float | None],
    changes: Sequence[float] = (0.0, *[0.01] * (LAST - 1)),
    update: float = 0.01,
) -> list[Finding]:
    facts = []
    for loss, change in zip(losses, changes, strict=True):
        output = replace(OUTPUT, loss=loss)
        changed = {"stem.weight": change, "head.bias": 2 * change} if change else {}
        facts.append(TrainingFacts(outputs=(output,), changed_outside=changed))
    scalars = {f"update_ratio/{name}": [update] * LAST for name in ("stem.weight", "head.bias")}
    return list(WeightsOverwrittenCheck()(record(facts=facts, scalars=scalars)))


def test_steps_that_are_undone_are_a_note_if_the_loss_stays() -> None:
    (one,) = found(STAYS)
    assert (one.class_, one.since_step, one.parameter) == ("note", 10, "stem.weight")
    assert one.value == pytest.approx(1.5)
    assert one.message == (
        "other code changes 2 parameters between two steps of the optimizer, by 1.5 % (median), "
        "1.5 times as much as a step does, at 7 of 7 logged steps after the first, since step 10: "
        "`stem.weight`, `head.bias`"
    )


def test_changes_that_are_meant_are_silent_while_the_loss_falls_or_is_not_known() -> None:
    assert found([2.3, 2.0, 1.5, *[1.0] * (LAST - 3)]) == []
    assert found([None] * LAST) == []


@pytest.mark.parametrize(("update", "count"), [(0.029, 1), (0.031, 0)])
def test_a_change_of_less_than_half_a_step_is_silent(update: float, count: int) -> None:
    assert len(found(STAYS, update=update)) == count


@pytest.mark.parametrize(("changed", "count"), [(3, 0), (4, 1)])
def test_changes_at_fewer_than_half_of_the_steps_are_silent(changed: int, count: int) -> None:
    assert len(found(STAYS, [0.0] * (LAST - changed) + [0.01] * changed)) == count


def test_the_first_logged_step_does_not_count() -> None:
    assert found(STAYS, [0.01] * 4 + [0.0] * (LAST - 4)) == []


@pytest.mark.parametrize(("limits", "verb"), [(2, "clamps"), (1, "changes")])
def test_clamps_are_told_from_other_changes(limits: int, verb: str) -> None:
    changed = {"stem.weight": 0.01, "head.bias": 0.02}
    clamped = dict.fromkeys(list(changed)[:limits], 0.1)
    known = TrainingFacts(
        outputs=(replace(OUTPUT, loss=2.3),), changed_outside=changed, clamped=clamped
    )
    scalars = {f"update_ratio/{name}": [0.01] * LAST for name in changed}
    (one,) = WeightsOverwrittenCheck()(record(facts=[known] * LAST, scalars=scalars))
    assert one.message.startswith(f"other code {verb} 2 parameters between two steps")
    assert ("clamped to a range" in one.meaning) is (verb == "clamps")
    assert ("average" in one.meaning) is (verb == "changes")
