"""Attention that sees padding."""

from __future__ import annotations

from check_records import LAST, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import AttendedPaddingCheck


def found(*weights: dict[str, float]) -> list[Finding]:
    facts = [TrainingFacts(padding=at_step) for at_step in weights]
    return list(AttendedPaddingCheck()(record(facts=facts)))


def test_the_layer_that_sees_most_padding_is_named() -> None:
    (note,) = found({}, *[{"0.attn.rows": 0.02, "1.attn.rows": 0.5}] * (LAST - 1))
    assert note.message == (
        "tokens give 50 % of their attention to padding in a head of `1.attn.rows`; likewise in 1 "
        "further layer"
    )
    assert (note.class_, note.since_step, note.value) == ("note", 10, 0.5)


def test_padding_that_is_hidden_now_or_seen_once_is_no_finding() -> None:
    assert found({"attn.rows": 0.5}, {"attn.rows": 0.5}, {}) == []
    assert found({}, {"attn.rows": 0.5}) == []


def test_a_token_that_ends_texts_by_chance_at_some_steps_is_no_padding() -> None:
    assert found({"attn.rows": 0.5}, {}, {}, {"attn.rows": 0.5}) == []
    assert len(found({"attn.rows": 0.5}, {}, {"attn.rows": 0.5})) == 1
