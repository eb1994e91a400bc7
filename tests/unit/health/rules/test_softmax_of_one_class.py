"""A softmax over a single class."""

from __future__ import annotations

from dataclasses import replace

from check_records import Rules, layer, record
from output_facts import findings_of

from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import SoftmaxOfOneClassCheck


def test_a_softmax_of_one_unit_is_always_1() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=1.0, high=1.0, spread=0.0, predictions=1)
    (found,) = findings_of(SoftmaxOfOneClassCheck(), *[one] * 3)
    assert found.message == "the output is exactly 1 for every input at every logged step"
    assert found.since_step is None
    assert findings_of(Rules("constant_output"), *[replace(one, low=0.999)] * 3) == []
    (found,) = findings_of(Rules("constant_output"), replace(one, low=0.9), *[one] * 3)
    assert found.kind == "constant_output"  # a sigmoid that is saturated by then
    (found,) = findings_of(Rules("constant_output"), *[replace(one, shape=(32, 2))] * 3)
    assert found.kind == "constant_output"
    assert "has collapsed" in found.meaning


def test_a_sigmoid_is_named_too_if_the_layer_of_the_output_is_not_watched() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=1.0, high=1.0, spread=0.0, predictions=1)
    facts = [TrainingFacts(outputs=(one,))] * 3
    (unknown,) = SoftmaxOfOneClassCheck()(record(facts=facts))
    assert "and so is a sigmoid of large values" in unknown.meaning
    assert "if it is a sigmoid" in unknown.advice
    known = record([layer(0), layer(1, channels=1)], facts=facts)
    (softmax,) = SoftmaxOfOneClassCheck()(known)
    assert softmax.meaning == "A softmax over a single class is always 1, and passes no gradient"
    assert softmax.advice == "Use a sigmoid, or two classes, instead of a softmax over one"
