"""Logits of attention that grow beyond what softmax can tell apart."""

from __future__ import annotations

import pytest
from check_records import layer, record

from fmapboard.checks import Finding, NotRecorded
from fmapboard.health.rules import AttentionLogitsCheck

HEADS = {"channels": 8, "unit": "head", "activation": None, "kernel_shape": None}
GROWING = [2.0, 8.0, 30.0, 90.0, 104.0, 130.0, 160.0, 200.0]


def of_logits(values: list[float], **known: object) -> list[Finding]:
    layers = [layer(i) for i in range(6)]
    layers[2] = layer(2, label="0.attn.rows", layer="0.attn.rows", **{**HEADS, **known})
    scalars = {"attention_logit/0.attn.rows/highest_head": values}
    return list(AttentionLogitsCheck()(record(layers, scalars=scalars)))


def test_logits_that_keep_growing_out_of_range_are_found_with_their_first_step() -> None:
    (found,) = of_logits(GROWING)
    assert found.message == (
        "the largest logit of `0.attn.rows` keeps growing, from 2 at the first step to 200 at step "
        "70, out of the range of softmax since step 40"
    )
    assert (found.class_, found.layer, found.since_step) == ("note", "0.attn.rows", 40)


def test_four_logged_steps_out_of_range_are_needed() -> None:
    assert of_logits([*GROWING[:4], 103.9, *GROWING[5:]]) == []


def test_logits_that_stop_growing_are_not_reported() -> None:
    assert of_logits([*GROWING[:7], 160.0]) == []
    assert of_logits([*GROWING[:5], 170.0, *GROWING[6:]]) == []


def test_logits_that_were_large_from_the_start_are_not_reported() -> None:
    from_start = [100.5, 110.0, 120.0, 130.0, 140.0, 150.0, 160.0]
    assert of_logits([*from_start, 200.9]) == []
    assert of_logits([*from_start, 201.0]) != []


def test_a_run_without_attention_has_none_and_one_without_its_logits_says_so() -> None:
    assert list(AttentionLogitsCheck()(record())) == []
    with pytest.raises(NotRecorded, match="attention_logit"):
        AttentionLogitsCheck()(record([layer(0, **HEADS)]))
