"""Attention between the samples of a batch."""

from __future__ import annotations

import pytest
from check_records import LAST, layer, record

from fmapboard.checks import Finding, NotRecorded
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import AttentionOverBatchCheck


def found(*layers: str, steps: int = LAST) -> list[Finding]:
    facts = [TrainingFacts(between_samples=layers if n < steps else ()) for n in range(LAST)]
    return list(AttentionOverBatchCheck()(record(facts=facts[::-1])))


def test_attention_between_samples_is_a_warning() -> None:
    (warning,) = found("a.rows", "b.rows")
    assert warning.message == (
        "attention is between the samples of the batch, and not between their tokens, in each of 2 "
        "layers, the first `a.rows`"
    )
    assert (warning.class_, warning.since_step, warning.layer) == ("warning", 0, "a.rows")
    (one,) = found("a.rows")
    assert one.message.endswith("in `a.rows`")


def test_it_is_so_at_more_than_half_of_the_logged_steps() -> None:
    assert found("a.rows", steps=LAST // 2) == []
    assert found("a.rows", steps=LAST // 2 + 1) != []


def test_attention_that_was_not_seen_is_not_checked() -> None:
    computing = layer(0, layer="blocks.0.attn", shape="Attention 64", unit="feature")
    with pytest.raises(NotRecorded, match="which was not seen"):
        AttentionOverBatchCheck()(record([computing], facts=[TrainingFacts()] * LAST))
