"""An output that is 0 for every input."""

from __future__ import annotations

from dataclasses import replace

from check_records import record

from fmapboard.checks import Check, Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import SaturatedOutputCheck, ZeroOutputCheck


def test_an_output_that_is_0_for_all_inputs_is_dead_and_not_merely_at_an_end() -> None:
    off = OutputFacts("b", (16, 3), predictions=1, pulled=1.0)
    on = replace(off, high=0.5)

    def found(check: Check, *every: OutputFacts) -> list[Finding]:
        facts = [TrainingFacts(outputs=(output,)) for output in every]
        return list(check(record(facts=facts)))

    zero, end = ZeroOutputCheck(), SaturatedOutputCheck()
    (one,) = found(zero, *[on] * 4, *[off] * 4)
    assert (one.kind, one.class_, one.since_step, one.value) == ("zero_output", "note", 40, 1.0)
    assert one.message == "the output `b` is 0 for all inputs since step 40"
    assert found(zero, *[on] * 5, *[off] * 3) == found(end, *[off] * 8) == []
    assert found(zero, *[replace(off, shape=())] * 8) == []  # a loss
    assert len(found(end, *[on] * 8)) == 1
