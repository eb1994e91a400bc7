"""Backward passes without a step of an optimizer."""

from __future__ import annotations

from dataclasses import replace

from check_records import Rules
from loop_facts import STEPPED, findings_at

from fmapboard.formats.training_facts import Idle, TrainingFacts
from fmapboard.health.rules import NoOptimizerStepCheck


def idle(count: int, **changes: bool | None) -> list[TrainingFacts]:
    """Logged steps in a row without an optimizer step, over which the weights are the same."""
    first = Idle(0, 0, is_held=True, is_cleared=True)
    return [
        TrainingFacts(batch=4, idle=replace(first, steps=n, **changes))  # type: ignore[arg-type]  # flags
        for n in range(count)
    ]


def test_backward_passes_without_an_optimizer_step() -> None:
    (found,) = findings_at(NoOptimizerStepCheck(), *idle(4))
    assert (found.class_, found.kind, found.since_step) == ("note", "no_optimizer_step", 0)
    assert "no optimizer stepped on the model at the last 4 logged steps" in found.message
    assert "An optimizer holds them" in found.meaning
    (found,) = findings_at(NoOptimizerStepCheck(), *idle(4, is_held=False))
    assert "No optimizer holds a parameter of this model" in found.meaning
    for silent in (idle(3), [*idle(7), STEPPED]):
        assert findings_at(Rules("unchanged_weights"), *silent) == []


def test_gradients_that_are_being_accumulated_are_intended() -> None:
    kept = idle(8, is_cleared=False)
    for silent in (kept, [*idle(1), *kept[1:]], idle(8, is_held=None)):
        assert findings_at(Rules("unchanged_weights"), *silent) == []
    assert len(findings_at(NoOptimizerStepCheck(), *idle(8, is_cleared=False, is_held=False))) == 1
