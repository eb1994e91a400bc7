"""Inputs other than images that are not scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from check_records import LAST, layer, record, statistics
from image_numbers import BYTES

from fmapboard.checks import Finding, NotRecorded, run_checks
from fmapboard.health.rules import InputMagnitudeCheck, ZeroWeightsCheck


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
    assert found(179.0, 1e3, 1e3) == found(0.041, 0.01) == []
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


def test_inputs_of_0_are_found_behind_a_batchnorm_too() -> None:
    scalars = {
        "gradient_norm/conv0.weight": [0.0] * LAST,
        "gradient_norm/conv0.bias": [1e-9] * LAST,
        "gradient_norm/conv1.weight": [0.5] * LAST,
        "update_ratio/conv0.weight": [0.0] * LAST,
    }
    constant = {"constant": {0: [1.0] * LAST}}
    layers = [layer(0, followed_by=("BatchNorm2d",)), layer(1)]
    (one,) = InputMagnitudeCheck()(record(layers, scalars=scalars, columns=constant))
    assert (one.class_, one.layer, one.since_step, one.value) == ("note", "conv0", 0, 0.0)
    assert one.message == (
        "the network's inputs are all 0 since step 0: its first layer, `conv0`, returns the same "
        "values for all of them, and its weights, which are not 0, have a gradient of exactly 0"
    )
    varied = {"constant": {0: [*[1.0] * (LAST - 1), 0.9]}}
    late = {**scalars, "gradient_norm/conv0.weight": [*[0.0] * (LAST - 1), 1e-9]}
    idle = {**scalars, "gradient_norm/conv0.bias": [0.0], "gradient_norm/conv1.weight": [0.0]}
    of_0 = {name: values for name, values in scalars.items() if "update" not in name}
    for columns, known in ((varied, scalars), (constant, late), (constant, idle), (constant, of_0)):
        with pytest.raises(NotRecorded, match="the input's range"):
            InputMagnitudeCheck()(record(layers, scalars=known, columns=columns))


def test_weights_are_not_called_0_where_the_inputs_are() -> None:
    scalars = {
        "gradient_norm/conv0.weight": [0.0] * LAST,
        "gradient_norm/conv1.weight": [0.5] * LAST,
        "update_ratio/conv0.weight": [0.0] * LAST,
    }
    same = statistics(*[(0.1 * v, 0.1 * v, 0.1 * v, 0.0) for v in range(16)])
    run = record(
        [layer(0, followed_by=("BatchNorm2d",)), layer(1)],
        scalars=scalars,
        columns={"constant": {0: [1.0] * LAST}},
        first={"conv0": same, "conv1": same},
    )
    assert len(ZeroWeightsCheck()(run)) == 1
    kinds = {found.kind for found in run_checks(run).findings}
    assert kinds & {"input_magnitude", "zero_weights"} == {"input_magnitude"}
