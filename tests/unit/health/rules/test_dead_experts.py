"""Experts to which their router sends no token."""

from __future__ import annotations

from check_records import from_step, layer, record

from fmapboard.checks import BUILT_IN, Finding
from fmapboard.health.rules import DeadCheck, DeadExpertsCheck


def routed(
    dead: list[float], lasting: list[float], tokens: int = 512, **known: object
) -> list[Finding]:
    facts = {
        "label": "blocks.0.gate",
        "layer": "blocks.0.gate",
        "type": "Linear",
        "kernel_shape": None,
        "channels": 8,
        "values": tokens,
        "activation": None,
        "unit": "expert",
        "shape": "Experts 8, top 2",
        **known,
    }
    layers = [layer(i) for i in range(6)]
    layers[2] = layer(2, **facts)
    found = record(
        layers,
        columns={"dead": {2: dead}, "dead_lasting": {2: lasting}, "values": {2: [tokens] * 8}},
    )
    return list(DeadExpertsCheck()(found))


def test_experts_without_a_token_are_counted() -> None:
    (found,) = routed(from_step(2, 0.25, 0.125), from_step(5, 0.25, 0.0))
    assert (
        found.message == "2 of 8 experts of `blocks.0.gate` get no token of the batch since step 20"
    )
    assert (found.class_, found.layer, found.since_step) == ("note", "blocks.0.gate", 20)


def test_a_single_expert_is_enough() -> None:
    (found,) = routed([0.125] * 8, [0.125] * 8)
    assert (
        found.message == "1 of 8 experts of `blocks.0.gate` gets no token of the batch since step 0"
    )


def test_experts_that_get_tokens_again_are_not_dead() -> None:
    assert routed([0.25] * 8, [0.0] * 8) == []
    assert routed([0.25, 0.0] * 4, [0.25] + [0.0] * 7) == []


def test_few_tokens_tell_nothing() -> None:
    assert routed([0.25] * 8, [0.25] * 8, tokens=160) != []
    assert routed([0.25] * 8, [0.25] * 8, tokens=159) == []


def test_channels_of_other_layers_are_no_experts() -> None:
    assert routed([0.25] * 8, [0.25] * 8, unit="unit") == []


def test_experts_are_no_dead_channels_of_an_activation() -> None:
    layers = [layer(i) for i in range(6)]
    layers[2] = layer(2, activation=None, unit="expert")
    columns = {"dead": {2: [0.95] * 8}, "dead_lasting": {2: [0.95] * 8}}
    assert list(DeadCheck()(record(layers, columns=columns))) == []
    assert "dead_experts" in [rule.kind for rule in BUILT_IN]
