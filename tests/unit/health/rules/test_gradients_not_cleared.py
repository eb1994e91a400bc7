"""Gradients of an earlier step that a backward pass adds to."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import LOOP, findings_at, only_finding

from fmapboard.health.rules import GradientsNotClearedCheck


def test_gradients_that_were_not_cleared_at_two_steps_after_the_first() -> None:
    kept = replace(LOOP, not_cleared=("conv.weight",))
    found = only_finding(GradientsNotClearedCheck(), LOOP, kept, kept, LOOP)
    assert (found.since_step, found.parameter) == (10, "conv.weight")
    assert "at 2 of 3 logged steps" in found.message
    assert findings_at(GradientsNotClearedCheck(), kept, kept, LOOP, LOOP) == []
    assert findings_at(GradientsNotClearedCheck(), kept) == []
    assert only_finding(GradientsNotClearedCheck(), LOOP, kept).since_step == 10
