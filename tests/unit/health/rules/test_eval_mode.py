"""A model that trains in eval mode."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import LOOP, findings_at, only_finding

from fmapboard.health.rules import EvalModeCheck


def test_eval_mode_at_the_last_two_steps() -> None:
    evaluates = replace(LOOP, eval_mode=True, eval_modules=("", "bn1"))
    found = only_finding(EvalModeCheck(), LOOP, evaluates, evaluates)
    assert found.since_step == 10
    assert found.message.endswith("since step 10: `the model`, `bn1`")
    assert findings_at(EvalModeCheck(), evaluates, evaluates, LOOP) == []
    assert findings_at(EvalModeCheck(), LOOP, LOOP, evaluates) == []
