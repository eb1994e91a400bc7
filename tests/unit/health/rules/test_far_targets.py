"""Targets far beyond what the network returns."""

from __future__ import annotations

from dataclasses import replace

from check_records import record
from output_facts import OUTPUT, findings_of

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import FarTargetsCheck


def test_targets_far_beyond_all_outputs_at_the_first_steps() -> None:
    far = OutputFacts("", (32, 1), low=0.0, high=1.0, away=20.0)
    (found,) = findings_of(FarTargetsCheck(), *[replace(far, away=300.0)] * 2, far, far, OUTPUT)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 20.0)
    assert found.message.startswith("the targets of the output are far beyond all of its values")
    (found,) = findings_of(FarTargetsCheck(), replace(far, away=0.0), *[far] * 3, OUTPUT)
    assert "or more at 3 of the first 4 logged steps" in found.message
    assert findings_of(FarTargetsCheck(), *[far] * 2, *[replace(far, away=19.0)] * 2, far) == []
    assert findings_of(FarTargetsCheck(), *[far] * 3) == []

    def at_each(*every: OutputFacts) -> list[Finding]:
        facts = [TrainingFacts(outputs=(one,)) for one in every]
        return list(FarTargetsCheck()(record(steps=range(len(every)), facts=facts)))

    assert len(at_each(*[far] * 21)) == 1
    assert at_each(*[far] * 20) == at_each(*[far] * 19, OUTPUT, OUTPUT) == []
