"""A loss that training makes larger."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import LossClimbedCheck


def test_a_loss_that_is_climbed() -> None:
    up = [replace(OUTPUT, is_climbed=True, loss=loss) for loss in (2.3, 3.0, 9.0)]
    (found,) = findings_of(LossClimbedCheck(), OUTPUT, *up)
    assert (found.class_, found.since_step, found.value) == ("warning", 10, 9.0)
    assert found.message == (
        "the optimizer makes the loss of the output larger since step 10: it went from 2.3 to 9"
    )
    assert findings_of(LossClimbedCheck(), *up, OUTPUT) == []
    assert findings_of(LossClimbedCheck(), OUTPUT, up[0]) == []
    assert findings_of(LossClimbedCheck(), *reversed(up)) == []
    assert len(findings_of(LossClimbedCheck(), *[replace(one, loss=None) for one in up])) == 1
    likelihood = OutputFacts(name="", shape=(), is_climbed=True, loss=2.0)
    assert findings_of(LossClimbedCheck(), *[likelihood] * 8) == []
