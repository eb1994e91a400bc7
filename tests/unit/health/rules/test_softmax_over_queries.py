"""Attention whose softmax is not over the keys."""

from __future__ import annotations

import pytest
from check_records import LAST, layer, record

from fmapboard.checks import Finding, NotRecorded
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import DeadHeadsCheck, SoftmaxOverQueriesCheck


def found(off: float, steps: int = LAST, second_call: str = "conv1") -> list[Finding]:
    facts = [TrainingFacts(off_one={"conv0": off} if n < steps else {}) for n in range(LAST)]
    layers = [layer(0), layer(1, layer=second_call)]
    return list(SoftmaxOverQueriesCheck()(record(layers, facts=facts[::-1])))


def test_rows_that_do_not_sum_to_1_are_told_with_their_first_step() -> None:
    (note,) = found(0.5, steps=3)
    assert note.message == (
        "the softmax of attention is not over the keys, so the sum of a row is up to 0.5 away from "
        "1: `conv0`"
    )
    assert (note.class_, note.since_step, note.layer) == ("note", 50, "conv0")


def test_rows_that_nearly_sum_to_1_and_one_logged_step_are_no_finding() -> None:
    assert found(0.01) != []
    assert found(0.0099) == []
    assert found(0.5, steps=1) == []


def test_attention_that_was_not_seen_is_not_checked() -> None:
    computing = layer(0, layer="blocks.0.attn", shape="Attention 64", unit="feature")
    rows = layer(1, layer="blocks.0.attn.rows", shape="Attention 8×64", unit="head")
    facts = [TrainingFacts()] * LAST
    for check in (SoftmaxOverQueriesCheck(), DeadHeadsCheck()):
        assert check(record([computing, rows], facts=facts)) == []
        with pytest.raises(NotRecorded, match="which was not seen"):
            check(record([computing, layer(1)], facts=facts))


def test_a_layer_with_several_softmaxes_normalizes_otherwise() -> None:
    assert found(0.5, second_call="conv0") == []
