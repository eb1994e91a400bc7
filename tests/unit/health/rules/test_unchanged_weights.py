"""Weights that never change although an optimizer steps."""

from __future__ import annotations

from dataclasses import replace

from check_records import STEPS
from loop_facts import LOOP, findings_at, only_finding

from fmapboard.formats.training_facts import Unchanged
from fmapboard.health.rules import UnchangedWeightsCheck


def test_weights_unchanged_over_three_applied_steps() -> None:
    still = replace(LOOP, unchanged={"conv.weight": Unchanged(3, 0)})
    found = only_finding(UnchangedWeightsCheck(), LOOP, still)
    assert (found.since_step, found.parameter, found.value) == (STEPS[1], "conv.weight", 3)
    assert found.message.startswith(f"weights unchanged since step {STEPS[1]}, over 3 logged steps")
    assert "at a learning rate of 0.1" in found.message
    four = {name: Unchanged(3, 0) for name in ("a.weight", "b.weight", "c.weight", "d.weight")}
    assert only_finding(
        UnchangedWeightsCheck(), LOOP, replace(LOOP, unchanged=four)
    ).parameters == (*four,)
    assert (
        findings_at(UnchangedWeightsCheck(), replace(LOOP, unchanged={"w": Unchanged(2, 20)})) == []
    )
    assert findings_at(UnchangedWeightsCheck(), still, LOOP) == []


def test_a_bias_and_a_weight_without_a_gradient_may_stay_as_they_are() -> None:
    bias = replace(LOOP, unchanged={"conv.bias": Unchanged(8, 0)})
    assert findings_at(UnchangedWeightsCheck(), bias) == []
    still = replace(LOOP, unchanged={"conv.weight": Unchanged(8, 0)})
    zero = {"gradient_norm/conv.weight": [0.0] * len(STEPS)}
    assert findings_at(UnchangedWeightsCheck(), still, **zero) == []
    nonzero = {"gradient_norm/conv.weight": [0.0, 1e-3]}
    assert len(findings_at(UnchangedWeightsCheck(), still, **nonzero)) == 1
