"""Attention that does not know where a token is."""

from __future__ import annotations

from check_records import LAST, record

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


def test_one_logged_step_causal_attention_and_a_network_without_attention_are_no_finding() -> None:
    assert found(1) == []
    assert found(LAST, is_causal=True) == []
    assert found(LAST, is_causal=None) == []
