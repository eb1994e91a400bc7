"""A softmax over probabilities."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of

from fmapboard.health.rules import DoubleSoftmaxCheck


def test_a_softmax_in_front_of_a_softmax_at_the_last_two_steps() -> None:
    double = replace(OUTPUT, rows_are="probabilities", is_softmax_of_softmax=True)
    (found,) = findings_of(DoubleSoftmaxCheck(), OUTPUT, double, double)
    assert (found.class_, found.since_step) == ("warning", 10)
    assert found.message == (
        "the output is probabilities, and the loss applies a softmax to them again, since step 10"
    )
    (found,) = findings_of(DoubleSoftmaxCheck(), *[replace(double, rows_are="any")] * 2)
    assert found.message == "two softmaxes follow the output, since step 0"
    assert findings_of(DoubleSoftmaxCheck(), double, double, OUTPUT) == []
    assert findings_of(DoubleSoftmaxCheck(), OUTPUT, double) == []
    lost = replace(OUTPUT, kind="not certain")  # two steps agreed when it was read
    (found,) = findings_of(DoubleSoftmaxCheck(), lost, double, lost)
    assert found.since_step == 10


def test_the_output_is_named_if_there_are_several() -> None:
    double = replace(OUTPUT, name="aux", rows_are="probabilities", is_softmax_of_softmax=True)
    (found,) = findings_of(DoubleSoftmaxCheck(), *[(OUTPUT, double)] * 2)
    assert found.message.startswith("the output `aux` is probabilities")
