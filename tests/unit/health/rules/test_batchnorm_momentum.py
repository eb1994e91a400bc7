"""Running statistics that stay the initial ones."""

from __future__ import annotations

from check_records import record

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import BatchnormMomentumCheck


def test_a_running_variance_that_is_still_the_initial_one() -> None:
    facts = [TrainingFacts()] * 6 + [TrainingFacts(initial_norms=("bn0", "bn1"))] * 2
    (found,) = BatchnormMomentumCheck()(record(facts=facts))
    assert (found.class_, found.layer, found.value, found.since_step) == ("note", "bn0", 2, 60)
    assert BatchnormMomentumCheck()(record(facts=[*facts[:-1], TrainingFacts()])) == []
