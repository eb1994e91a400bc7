"""Parameters that no optimizer holds."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import LOOP, findings_at, only_finding

from fmapboard.formats.training_facts import OUTSIDE
from fmapboard.health.rules import NotInOptimizerCheck


def test_parameters_in_no_optimizer_at_the_last_two_steps() -> None:
    lost = replace(LOOP, not_in_optimizer=("head.weight", "head.bias"))
    found = only_finding(NotInOptimizerCheck(), LOOP, LOOP, lost, lost)
    assert (found.since_step, found.parameter, found.value) == (20, "head.weight", 2)
    assert found.message == (
        "2 trainable parameters are in no optimizer since step 20: `head.weight`, `head.bias`"
    )
    assert found.meaning.startswith("These layers were made after the first logged step")
    assert "created before" in only_finding(NotInOptimizerCheck(), lost, lost).meaning
    assert findings_at(NotInOptimizerCheck(), LOOP, lost, LOOP) == []
    assert findings_at(NotInOptimizerCheck(), LOOP, LOOP, lost) == []
    assert only_finding(NotInOptimizerCheck(), lost).since_step == 0
    outside = only_finding(
        NotInOptimizerCheck(), replace(lost, not_in_optimizer=(f"{OUTSIDE}[3] (1)",))
    )
    assert outside.parameter is None
    assert "nn.ModuleList" in outside.advice


def test_names_that_were_not_stored_are_counted() -> None:
    lost = replace(LOOP, not_in_optimizer=("a",), left_out={"not_in_optimizer": 99})
    assert only_finding(NotInOptimizerCheck(), lost, lost).message.endswith(
        "step 0: `a` and 99 more"
    )
