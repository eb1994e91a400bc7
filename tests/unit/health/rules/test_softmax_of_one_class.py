"""A softmax over a single class."""

from __future__ import annotations

from dataclasses import replace

from check_records import Rules
from output_facts import findings_of

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import SoftmaxOfOneClassCheck


def test_a_softmax_of_one_unit_is_always_1() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=1.0, high=1.0, spread=0.0, predictions=1)
    (found,) = findings_of(SoftmaxOfOneClassCheck(), *[one] * 3)
    assert found.message == "the output is exactly 1 for every input at every logged step"
    assert found.since_step is None
    assert found.meaning == "A softmax over a single class is always 1, and passes no gradient"
    assert findings_of(Rules("constant_output"), *[replace(one, low=0.999)] * 3) == []
    (found,) = findings_of(Rules("constant_output"), replace(one, low=0.9), *[one] * 3)
    assert found.kind == "constant_output"  # a sigmoid that is saturated by then
    (found,) = findings_of(Rules("constant_output"), *[replace(one, shape=(32, 2))] * 3)
    assert found.kind == "constant_output"
    assert "has collapsed" in found.meaning
