"""Heads of attention that attend to all tokens alike, or to one."""

from __future__ import annotations

import numpy as np
from check_records import LAST, from_step, layer, record

from fmapboard.checks import Finding
from fmapboard.health.rules import DeadCheck, DeadHeadsCheck
from fmapboard.health.states import dead_heads

ROWS = {
    "label": "blocks.0.attn.rows",
    "layer": "blocks.0.attn.rows",
    "type": "Attention",
    "kernel_shape": None,
    "channels": 8,
    "activation": None,
    "unit": "head",
    "shape": "Attention 8×64",
}


def attended(
    dead: list[float], lasting: list[float], lowest: float = 0.9, **known: object
) -> list[Finding]:
    layers = [layer(i) for i in range(6)]
    layers[2] = layer(2, **{**ROWS, **known})
    found = record(
        layers,
        columns={"dead": {2: dead}, "dead_lasting": {2: lasting}},
        scalars={"attention_entropy/blocks.0.attn.rows/lowest_head": [lowest] * LAST},
    )
    return list(DeadHeadsCheck()(found))


def test_heads_that_attend_to_all_tokens_alike_are_counted() -> None:
    (found,) = attended(from_step(2, 0.25, 0.125), from_step(5, 0.25, 0.0))
    assert found.message == (
        "2 of 8 heads of `blocks.0.attn.rows` attend to all tokens alike since step 20"
    )
    assert (found.class_, found.layer, found.since_step) == ("note", "blocks.0.attn.rows", 20)
    assert found.meaning.startswith("Their queries or keys are 0")


def test_a_head_that_attends_to_a_single_token_is_said_so() -> None:
    (found,) = attended([0.125] * LAST, [0.125] * LAST, lowest=0.05)
    assert found.message == (
        "1 of 8 heads of `blocks.0.attn.rows` attends to a single token since step 0"
    )
    assert "so far apart" in found.meaning


def test_heads_that_choose_again_are_not_dead() -> None:
    assert attended([0.25] * LAST, [0.0] * LAST) == []


def test_the_first_steps_tell_nothing() -> None:
    assert attended(from_step(3, 0.25, 0.0), from_step(6, 0.25, 0.0)) == []  # 40 steps
    assert attended(from_step(2, 0.25, 0.0), from_step(6, 0.25, 0.0)) != []  # 50


def test_units_of_other_layers_are_no_heads() -> None:
    assert attended([0.25] * LAST, [0.25] * LAST, unit="unit", shape="MLP 64→256") == []


def test_dead_heads_are_no_dead_channels_and_hide_none_behind_them() -> None:
    layers = [layer(i) for i in range(6)]
    layers[2] = layer(2, **ROWS)
    columns = {name: {2: [1.0] * LAST, 4: [0.95] * LAST} for name in ("dead", "dead_lasting")}
    columns["constant"] = {2: [1.0] * LAST}
    (found,) = DeadCheck()(record(layers, columns=columns))
    assert found.layer == "conv4"


def test_a_head_is_dead_if_it_is_uniform_or_of_one_token_beyond_the_range_of_softmax() -> None:
    entropy = np.array([1.0, 1 - 1e-6, 1 - 1.2e-6, 0.05, 0.05, 0.051, np.nan])
    logit = np.array([0.0, 1.0, 1.0, 104.0, 103.9, 1e4, 1e4])
    found = dead_heads(entropy, logit, np.full(7, 0.1), np.full(7, 0.1))
    assert found.tolist() == [True, True, False, True, False, False, False]


def test_a_head_whose_weights_differ_a_little_is_not_uniform() -> None:
    entropy = np.ones(3)
    smallest = np.array([0.1 - 1.01e-5, 0.1 - 0.99e-5, 0.0])
    found = dead_heads(entropy, np.zeros(3), smallest, np.full(3, 0.1))
    assert found.tolist() == [False, True, False]
