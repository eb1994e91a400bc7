"""Dropout that leaves hardly anything."""

from __future__ import annotations

from check_records import record

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import DropoutHighCheck


def test_dropout_that_leaves_hardly_anything() -> None:
    high = TrainingFacts(dropouts={"drop": 0.9, "other": 0.5})
    (found,) = DropoutHighCheck()(record(facts=[TrainingFacts(), high, high]))
    assert (found.layer, found.since_step, found.value) == ("drop", 10, 0.9)
    assert found.message == "dropout sets 90 % of the values to 0 since step 10: `drop`"
    (found,) = DropoutHighCheck()(record(facts=[TrainingFacts(dropouts={"a": 0.8, "b": 0.8})] * 2))
    assert found.message == "dropout sets 80 % of the values to 0 since step 0: `a`, `b`"
    some, one = TrainingFacts(dropouts={"a": 0.79, "b": 0.8}), TrainingFacts(dropouts={"a": 0.89})
    for facts in ([some] * 8, [one] * 8, [high, TrainingFacts()]):
        assert list(DropoutHighCheck()(record(facts=facts))) == []
