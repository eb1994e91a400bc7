"""Attention that does not know where a token is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import LAST, layer, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import MissingPositionsCheck


def found(ignores: int, is_causal: bool | None = False) -> list[Finding]:
    """Of a run at whose newest steps, so many, equal tokens have the same output."""
    facts = []
    for step in range(LAST):
        output = OutputFacts("", (2, 5, 9), ignores_places=step >= LAST - ignores)
        facts.append(TrainingFacts(is_causal=is_causal, outputs=(output,)))
    return list(MissingPositionsCheck()(record(facts=facts)))


def test_a_network_that_says_the_same_of_a_token_wherever_it_is_is_warned_of() -> None:
    for ignores in (2, LAST):
        (warning,) = found(ignores)
        assert warning.message == (
            "wherever a token stands in a text, the network says the same of it, although the "
            "labels differ"
        )
        assert (warning.class_, warning.since_step) == ("warning", 0)


def test_of_samples_that_are_no_texts_it_is_said_where_attention_is_seen() -> None:
    output = OutputFacts("", (2, 5, 9), ignores_places=True)
    facts = [TrainingFacts(outputs=(output,))] * LAST
    heads = [replace(layer(0), channels=4, unit="head", activation=None)]
    (warning,) = MissingPositionsCheck()(record(heads, facts=facts))
    assert warning.message == (
        "at each place of a sample that the loss looks at, the network says the same, although "
        "the targets differ"
    )
    assert list(MissingPositionsCheck()(record(facts=facts))) == []


@pytest.mark.parametrize(("loss", "is_near"), [(1.0, True), (0.61, False)])
def test_equal_weights_of_equal_tokens_count_while_the_loss_is_near_that_of_guessing(
    loss: float, is_near: bool
) -> None:
    labels = ((0, 8), (1, 8))  # ln 2 is 0.69
    output = OutputFacts(
        "", (2, 5, 2), predictions=2, classes=2, labels=labels, loss=loss, attends_alike=True
    )
    facts = [TrainingFacts(is_causal=False, outputs=(output,))] * LAST
    found = [finding.message for finding in MissingPositionsCheck()(record(facts=facts))]
    expected = (
        "the first attention over a text gives equal tokens the same weight wherever they stand, "
        "and the loss stays near that of the frequency of the labels alone"
    )
    assert found == ([expected] if is_near else [])


def test_one_logged_step_causal_attention_and_a_network_without_attention_are_no_finding() -> None:
    assert found(1) == []
    assert found(LAST, is_causal=True) == []
    assert found(LAST, is_causal=None) == []
