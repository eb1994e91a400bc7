"""Probabilities, or what a ReLU or tanh returned, in front of a loss that expects logits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from check_records import layer
from output_facts import OUTPUT, findings_of, record_of

from fmapboard.health.rules import ProbabilitiesIntoLossCheck


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"low": 0.3, "high": 0.7}, "a sigmoid, or a softmax over another axis"),
        ({"low": 0.01, "high": 1.0}, "a sigmoid, or a softmax over another axis"),
        ({"low": 0.0, "high": 3.0}, "a ReLU"),
        ({"low": 0.3, "high": 0.7, "kind": "BCE with logits"}, "a sigmoid"),
        ({"low": 0.01, "high": 0.2}, "a softmax over another axis"),
        ({"low": 0.01, "high": 0.2, "classes": 5}, ""),
        ({"low": 0.1, "high": 0.4, "rows_are": "probabilities"}, "a softmax in front"),
        ({"low": 0.04, "high": 0.2}, ""),  # above 1 / 32
        ({"low": 0.0, "high": 0.4}, ""),
        ({"low": 0.1, "high": 3.0}, ""),
        ({"low": -0.1, "high": 0.7}, ""),
        ({"low": 0.3, "high": 0.7, "kind": "weighted per sample"}, ""),
        ({"low": 0.3, "high": 0.7, "kind": "NLL of log-probabilities"}, ""),
        ({"low": 0.3, "high": 0.7, "given": True}, ""),
        ({"low": 0.002, "high": 0.2, "kind": "BCE with logits", "shape": (32, 1)}, "a sigmoid"),
        ({"low": 0.003, "high": 0.2, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.002, "high": 1.2, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.2, "high": 0.9, "kind": "BCE with logits", "shape": (32, 1)}, "a sigmoid"),
        ({"low": 0.21, "high": 0.9, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.2, "high": 0.89, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.0, "high": 1.1, "kind": "BCE with logits", "shape": (32, 1)}, ""),
    ],
)
def test_probabilities_or_a_relu_in_front_of_a_loss_on_logits(
    changes: dict[str, Any], words: str
) -> None:
    each = replace(OUTPUT, **changes)
    found = findings_of(ProbabilitiesIntoLossCheck(), *[each] * 4)
    assert [one.class_ for one in found] == ["note"] * bool(words)
    assert all(words in one.meaning for one in found)
    assert findings_of(ProbabilitiesIntoLossCheck(), *[each] * 3) == []
    assert findings_of(ProbabilitiesIntoLossCheck(), *[each] * 7, replace(OUTPUT, low=-1e-3)) == []
    unread = replace(each, kind="not certain")  # at two steps, the loss must be known
    assert len(findings_of(ProbabilitiesIntoLossCheck(), unread, each, each, unread)) == bool(words)
    assert findings_of(ProbabilitiesIntoLossCheck(), *[unread] * 3, each) == []


def test_a_tanh_in_front_of_a_loss_on_logits_and_the_range_at_all_steps() -> None:
    bounded = replace(OUTPUT, low=-0.9, high=1.0)
    (found,) = findings_of(ProbabilitiesIntoLossCheck(), OUTPUT, *[bounded] * 4)
    assert "the output of a tanh in front of a loss" in found.meaning
    assert findings_of(ProbabilitiesIntoLossCheck(), *[bounded] * 3) == []
    sigmoid = replace(OUTPUT, low=0.3, high=0.7)
    unread = replace(sigmoid, low=0.05, kind="not certain")
    (found,) = findings_of(ProbabilitiesIntoLossCheck(), unread, *[sigmoid] * 3)
    assert found.message.startswith("the output is from 0.05 to 0.7 at 4 logged steps")
    for ends in ({"low": -0.89}, {"high": 0.89}, {"low": -1.01}, {"high": 1.01}):
        assert (
            findings_of(ProbabilitiesIntoLossCheck(), *[bounded] * 3, replace(bounded, **ends))
            == []
        )  # type: ignore[arg-type]


def test_logits_that_are_averages_of_activations_are_never_negative() -> None:
    last = layer(5, channels=10)
    average = [replace(OUTPUT, low=0.0, high=3.0)] * 8
    rows = [layer(i) for i in range(5)]
    assert list(ProbabilitiesIntoLossCheck()(record_of(average, layers=[*rows, last]))) == []
    plain = replace(last, activation=None)
    linear = replace(last, type="Linear", kernel_shape=None)
    first = [layer(0, channels=10), *rows[1:]]
    for layers in ([*rows, plain], first, [*rows, linear]):
        assert len(ProbabilitiesIntoLossCheck()(record_of(average, layers=layers))) == 1
