"""Language models whose labels are not the next tokens."""

from __future__ import annotations

from dataclasses import replace

from check_records import LAST, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import LabelsNotShiftedCheck

COPY = OutputFacts("", (2, 5, 9), labels_ahead=0, accuracy=0.99)
TWICE = replace(COPY, labels_ahead=2, accuracy=0.1)
NEXT = replace(COPY, labels_ahead=1)


def found(*outputs: OutputFacts, is_causal: bool | None = True, first: int = 0) -> list[Finding]:
    right = TrainingFacts(is_causal=is_causal, outputs=(NEXT,))
    facts = TrainingFacts(is_causal=is_causal, outputs=outputs)
    steps = [right] * first + [facts] * (LAST - first)
    return list(LabelsNotShiftedCheck()(record(facts=steps)))


def test_labels_that_are_the_tokens_received_are_a_warning_once_they_are_copied() -> None:
    (warning,) = found(COPY)
    assert warning.message == (
        "the label of each token is that token, which the network has just received: 99 % of its "
        "answers are right"
    )
    assert (warning.class_, warning.since_step, warning.value) == ("warning", 0, 0.99)
    assert found(replace(COPY, accuracy=0.98)) == []
    assert found(replace(COPY, accuracy=None)) == []


def test_labels_that_are_two_tokens_ahead_are_a_warning() -> None:
    (warning,) = found(TWICE)
    assert warning.message == (
        "the label of each token is the second one behind it, so the network learns to leave out "
        "the next token"
    )
    assert (warning.class_, warning.since_step) == ("warning", 0)


def test_the_next_token_and_networks_that_are_not_causal_are_no_finding() -> None:
    assert found(NEXT) == []
    assert found(TWICE, NEXT) == []
    assert found(COPY, TWICE) == []
    assert found() == []
    for is_causal in (False, None):
        assert found(COPY, is_causal=is_causal) == found(TWICE, is_causal=is_causal) == []


def test_one_logged_step_tells_nothing() -> None:
    assert found(TWICE, first=LAST - 1) == []
    assert found(TWICE, first=LAST - 2) != []
