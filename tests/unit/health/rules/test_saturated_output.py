"""An output that is at an end of its range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from check_records import record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import SaturatedOutputCheck, SoftmaxOfOneClassCheck


def test_an_output_that_ends_up_at_one_end_of_a_tanh() -> None:
    def found(*every: tuple[float, float], **known: Any) -> list[Finding]:
        outputs = [OutputFacts("", (16, 3), low=low, high=high) for low, high in every]
        facts = [TrainingFacts(outputs=(replace(each, **known),)) for each in outputs]
        return list(SaturatedOutputCheck()(record(facts=facts)))

    free, end = (-0.5, 0.7), (0.92, 1.0)
    (one,) = found(*[free] * 4, *[end] * 4)
    assert (one.since_step, one.value, one.layer) == (40, 1.0, None)
    assert len(found(*[free] * 4, *[(-1.0, -0.9)] * 4)) == 1
    assert found(*[free] * 5, *[end] * 3) == found(*[free] * 4, *[(0.89, 1.0)] * 4) == []
    assert found((-0.5, 1.1), *[end] * 7) == []  # no tanh is there
    assert found(*[end] * 8, shape=(16, 1, 4, 4)) == []  # a critic
    assert found(*[end] * 8, shape=(16, 1), away=0.49) == []
    assert len(found(*[end] * 8, shape=(16, 1), away=0.5)) == 1  # targets beyond all outputs
    near = (0.1, 0.9)
    (one,) = found(*[near] * 8, away=0.5)
    assert one.message == "the output goes to an end of its range, 0.1 to 0.9, since step 0"
    assert found(*[near] * 8, away=0.49) == found(*[(0.1, 0.89)] * 8, away=0.5) == []


def test_an_output_that_the_loss_pulls_beyond_its_end() -> None:
    def found(*shares: float, **known: Any) -> list[Finding]:
        outputs = [OutputFacts("", (16, 1), low=0.0, high=0.8, pulled=of) for of in shares]
        facts = [TrainingFacts(outputs=(replace(each, **known),)) for each in outputs]
        return list(
            SaturatedOutputCheck()(record(facts=facts, steps=range(0, 10 * len(facts), 10)))
        )

    (one,) = found(*[0.0] * 4, *[0.3] * 4)
    assert (one.since_step, one.value, one.layer) == (40, 0.3, None)
    assert one.message == (
        "30 % of the values of the output are at an end of its range, 0 to 0.8, and the loss pulls "
        "them further, since step 40"
    )
    assert found(*[1.0] * 4)[0].message.startswith("100 % of the values")
    (one,) = found(*[0.0] * 4, 0.02, 0.1, 0.08, 0.02)
    assert (one.since_step, one.value) == (50, 0.05)
    assert one.message.endswith("further, from step 50 to 60")  # and not at the last step
    (one,) = found(0.3, *[0.0] * 2, *[0.3] * 5)
    assert (one.since_step, one.message[-13:]) == (30, "since step 30")
    assert found(*[0.3] * 5, *[0.04] * 3) == found(*[0.0] * 6, *[0.09] * 2) == []
    assert found(*[0.3] * 3) == found(*[0.3] * 8, rows_are="probabilities") == []
    assert len(found(*[0.0] * 6, *[0.3] * 3, *[0.0] * 3)) == 1  # of the later half
    for low, high, is_end in ((-0.995, 0.3, 1), (0.5, 1.0, 1), (0.02, 0.3, 0), (1.5, 2.0, 0)):
        assert len(found(*[0.3] * 8, low=low, high=high)) == is_end


def test_a_sigmoid_that_is_1_from_the_first_step_is_saturated_and_no_softmax() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=1.0, high=1.0, spread=0.0, predictions=1)
    for lowest, is_sigmoid in ((17.0, True), (4.6, True), (4.5, False)):
        run = record(
            facts=[TrainingFacts(outputs=(one,))] * 8, columns={"minimum": {5: [lowest] * 8}}
        )
        found = list(SaturatedOutputCheck()(run))
        assert bool(found) is is_sigmoid
        assert bool(SoftmaxOfOneClassCheck()(run)) is not is_sigmoid
    run = record(facts=[TrainingFacts(outputs=(one,))] * 8, columns={"minimum": {5: [17.0] * 8}})
    (at_1,) = SaturatedOutputCheck()(run)
    assert (at_1.since_step, at_1.layer) == (0, "conv5")
    assert at_1.message == (
        "the output is exactly 1 for every input at every logged step: the last layer, `conv5`, "
        "returns 17 or more"
    )
