"""A likelihood without its logarithm."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of

from fmapboard.formats.training_facts import LossKind, OutputFacts
from fmapboard.health.rules import LossWithoutLogarithmCheck


def test_probabilities_in_front_of_a_loss_of_logarithms() -> None:
    linear = replace(OUTPUT, kind=LossKind.NLL_OF_PROBABILITIES, loss=None)
    (found,) = findings_of(LossWithoutLogarithmCheck(), OUTPUT, *[linear] * 4)
    assert found.message == (
        "the loss of the output is linear in the probability of the label since step 10"
    )
    (found,) = findings_of(
        LossWithoutLogarithmCheck(), *[replace(linear, kind=LossKind.NLL_OF_LOGITS)] * 4
    )
    assert "linear in the output of the label" in found.message
    assert "no log_softmax" in found.meaning
    lost = OutputFacts("", OUTPUT.shape, rows=32)  # NaN, of which nothing is known
    assert len(findings_of(LossWithoutLogarithmCheck(), OUTPUT, *[linear] * 4, lost, lost)) == 1
    for silent in ([OUTPUT, *[linear] * 3], [*[linear] * 4, OUTPUT]):
        assert findings_of(LossWithoutLogarithmCheck(), *silent) == []
