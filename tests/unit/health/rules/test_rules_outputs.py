"""Rules of outputs, losses and labels: where nothing is known, and after a network has diverged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from output_facts import OUTPUT, findings_of

from fmapboard.checks import Check, NotRecorded
from fmapboard.formats.training_facts import LossKind, OutputFacts
from fmapboard.health.rules import (
    AveragedTargetsCheck,
    ConstantOutputCheck,
    DoubleSoftmaxCheck,
    EmptyCodeCheck,
    FarTargetsCheck,
    InitialLossCheck,
    LabelsBeyond1Check,
    LossClimbedCheck,
    LossWithoutLogarithmCheck,
    OneLabelCheck,
    ProbabilitiesIntoLossCheck,
    SoftmaxOfOneClassCheck,
    SortedLabelsCheck,
    UnusedClassesCheck,
)

CHECKS: list[Check] = [
    ConstantOutputCheck(), SoftmaxOfOneClassCheck(), AveragedTargetsCheck(), EmptyCodeCheck(),
    DoubleSoftmaxCheck(), InitialLossCheck(), FarTargetsCheck(), LossClimbedCheck(),
    LabelsBeyond1Check(), OneLabelCheck(), ProbabilitiesIntoLossCheck(),
    LossWithoutLogarithmCheck(), SortedLabelsCheck(), UnusedClassesCheck(),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_what_is_not_known_is_no_finding(check: Check) -> None:
    assert findings_of(check, *[OutputFacts(name="", shape=(32, 10), rows=32)] * 8) == []
    scalar = OutputFacts(name="", shape=(), rows=1, spread=None)
    assert findings_of(check, *[scalar] * 8) == []
    with pytest.raises(NotRecorded, match="an output of the network with a gradient"):
        findings_of(check, *[()] * 8)


def test_what_is_wrong_with_the_loss_is_told_of_a_network_that_has_diverged_since() -> None:
    lost = OutputFacts("", OUTPUT.shape, rows=32, low=-1e6, high=1e6)  # its loss cannot be read
    double = {"is_softmax_of_softmax": True, "rows_are": "probabilities"}
    linear = {"kind": LossKind.NLL_OF_LOGITS}
    cases: tuple[tuple[Check, dict[str, Any], str], ...] = (
        (LossClimbedCheck(), {"is_climbed": True}, "the optimizer makes the loss"),
        (DoubleSoftmaxCheck(), double, "the output is probabilities"),
        (LossWithoutLogarithmCheck(), linear, "the loss of the output"),
    )
    for check, changes, message in cases:
        wrong = replace(OUTPUT, **changes)
        (found,) = findings_of(check, *[wrong] * 4, lost, lost)
        assert found.since_step == 0
        assert found.message.startswith(message)
        assert findings_of(check, *[wrong] * 4, lost, OUTPUT) == []
