"""The input's scale: on both sides of each threshold, and where it does not matter."""

from __future__ import annotations

import pytest
from check_records import STEPS, layer, record

from fmapboard.checks import NotRecorded
from fmapboard.checks.input_scale import InputScaleCheck

LAST = len(STEPS)
BYTES = {"minimum": 0.0, "maximum": 200.0, "mean": 110.0, "std": 50.0}
FLAT = {"minimum": 0.01, "maximum": 0.07, "mean": 0.04, "std": 0.01}


@pytest.mark.parametrize(
    ("largest", "spread", "is_found"),
    [
        (255.0, 60.0, True),
        (30.0, 1.0, False),
        (30.1, 1.0, True),
        (1.0, 0.029, True),
        (1.0, 0.031, False),
    ],
)
def test_the_inputs_range(largest: float, spread: float, is_found: bool) -> None:
    inputs = {"minimum": 0.0, "maximum": largest, "mean": 0.5, "std": spread}
    found = InputScaleCheck()(record(inputs=inputs, columns={"std": {0: [2.1] * LAST}}))
    assert [one.kind for one in found] == ["input_scale"] * is_found


def test_constant_inputs_have_no_scale_and_unknown_ones_are_not_recorded() -> None:
    constant = {"minimum": 0.5, "maximum": 0.5, "mean": 0.5, "std": 0.0}
    assert InputScaleCheck()(record(inputs=constant)) == []
    with pytest.raises(NotRecorded, match="input"):
        InputScaleCheck()(record())
    with pytest.raises(NotRecorded):
        InputScaleCheck()(record(inputs={"mean": 0.5}))


def test_large_images_that_the_network_scales_itself_are_silent() -> None:
    scaled = {"std": {0: [2.0] * LAST}}
    assert InputScaleCheck()(record(inputs=BYTES, columns=scaled)) == []
    no_kernels = [layer(i, kernel_shape=None) for i in range(6)]
    assert len(InputScaleCheck()(record(no_kernels, inputs=BYTES, columns=scaled))) == 1


@pytest.mark.parametrize(("after", "is_found"), [(4.6, False), (0.99, True), (0.35, True)])
def test_flat_images_before_a_normalization_are_silent(after: float, is_found: bool) -> None:
    layers = [layer(0), layer(1, label="relu0", layer="relu0", kernel_shape=None), layer(2)]
    columns = {"maximum": {0: [0.14] * LAST, 1: [after] * LAST}, "minimum": {0: [-0.1] * LAST}}
    columns["minimum"][1] = [0.0] * LAST
    found = InputScaleCheck()(record(layers, inputs=FLAT, columns=columns))
    assert len(found) == is_found


def test_only_a_range_up_to_255_is_called_one() -> None:
    columns = {"std": {0: [9.0] * LAST}}
    (found,) = InputScaleCheck()(record(inputs=BYTES, columns=columns))
    assert found.meaning == "The images are not scaled: 0 to 255 instead of 0 to 1"
    decibels = {**BYTES, "minimum": -46.0, "maximum": 21.0}
    (found,) = InputScaleCheck()(record(inputs=decibels, columns=columns))
    assert found.meaning == "The images are not scaled: their values range from -46 to 21"
