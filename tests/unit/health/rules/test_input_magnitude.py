"""Inputs other than images that are not scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from check_records import layer, record
from image_numbers import BYTES

from fmapboard.checks import Finding, NotRecorded
from fmapboard.health.rules import InputMagnitudeCheck


def test_the_gradients_of_the_first_layer_tell_of_inputs_that_are_no_images() -> None:
    def found(*ratios: float, bias: float = 0.5, **facts: Any) -> list[Finding]:
        own = "_ih_l0" if facts.get("type") == "LSTM" else ""
        scalars = {
            f"gradient_norm/conv0.weight{own}": [bias * ratio for ratio in ratios],
            f"gradient_norm/conv0.bias{own}": [bias] * len(ratios),
        }
        return list(InputMagnitudeCheck()(record([layer(0, **facts), layer(1)], scalars=scalars)))

    (one,) = found(180.0, 1.0, 1.0)
    assert (one.class_, one.layer, one.since_step, one.value) == ("note", "conv0", 0, 180.0)
    assert one.message == (
        "the network's inputs have a magnitude of about 180 since step 0, estimated from its first "
        "layer, `conv0`"
    )
    assert one.meaning == "They are not scaled"
    (one,) = found(0.01, 0.04, 0.05, type="LSTM", kernel_shape=None)
    assert (one.value, one.meaning) == (0.01, "They are scaled twice, or zeros")
    assert len(found(0.0)) == len(found(1e5, 2e5, 2e5)) == len(found(2e5, 1e5, 1e5)) == 1
    assert found(179.0, 1e3, 1e3) == found(0.041, 0.01) == found(0.01, 0.041, 0.041) == []
    batch, words = {"followed_by": ("BatchNorm1d",)}, {"type": "Embedding", "kernel_shape": None}
    assert found(1e-3, **words) == []  # they have no magnitude
    for facts in ({"bias": 0.0}, batch):
        with pytest.raises(NotRecorded, match="the input's range"):
            found(1e-3, **facts)
    for ratios in ((1.1e5,), ()):
        with pytest.raises(NotRecorded, match="the input's range"):
            found(*ratios)


def test_unknown_inputs_are_not_recorded() -> None:
    for inputs in ({}, {"mean": 0.5}):
        with pytest.raises(NotRecorded, match="the input's range"):
            InputMagnitudeCheck()(replace(record(inputs=inputs), health=None))


def test_images_have_rules_of_their_own() -> None:
    bias = {"gradient_norm/conv0.weight": [500.0], "gradient_norm/conv0.bias": [0.5]}
    assert len(InputMagnitudeCheck()(record(scalars=bias))) == 1
    assert InputMagnitudeCheck()(record(scalars=bias, inputs=BYTES)) == []
