"""Running statistics that stay the initial ones."""

from __future__ import annotations

from check_records import LAST, record

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import BatchnormMomentumCheck


def test_a_running_variance_that_is_still_the_initial_one_at_two_steps() -> None:
    facts = [TrainingFacts()] * 6 + [TrainingFacts(initial_norms=("bn0", "bn1"))] * 2
    (found,) = BatchnormMomentumCheck()(record(facts=facts))
    assert (found.class_, found.layer, found.value, found.since_step) == ("note", "bn0", 2, 60)
    fits = {"batchnorm_gap/bn0": [0.1] * LAST}
    (found,) = BatchnormMomentumCheck()(record(facts=facts, scalars=fits))
    assert (found.layer, found.value) == ("bn1", 1)
    for one_only in ([*facts[:-1], TrainingFacts()], [*facts[:5], *facts[:2], facts[-1]]):
        assert BatchnormMomentumCheck()(record(facts=one_only, scalars=fits)) == []
