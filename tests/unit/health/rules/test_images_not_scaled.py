"""Input images with large values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from check_records import LAST, Rules, layer, record
from image_numbers import BYTES
from loop_facts import LOOP

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import ImagesNotScaledCheck


def test_large_images_that_the_network_scales_itself_are_silent() -> None:
    scaled = {"std": {0: [2.0] * LAST}}
    assert ImagesNotScaledCheck()(record(inputs=BYTES, columns=scaled)) == []
    for low, is_found in ((-20.5, True), (-20.0, False)):  # or does it? The output is as large
        first = replace(LOOP, outputs=(OutputFacts("", (8, 4), low=low, high=30.0),))
        given = record(inputs=BYTES, columns=scaled, facts=[first] + [LOOP] * 7)
        assert len(ImagesNotScaledCheck()(given)) == is_found
    no_kernels = [layer(i, kernel_shape=None) for i in range(6)]
    assert len(ImagesNotScaledCheck()(record(no_kernels, inputs=BYTES, columns=scaled))) == 1


def test_a_spread_far_above_1_is_a_scale_too() -> None:
    wide = {"minimum": -29.0, "maximum": 28.0, "mean": 0.0, "std": 11.0}
    columns = {"std": {0: [9.0] * LAST}}
    (found,) = ImagesNotScaledCheck()(record(inputs=wide, columns=columns))
    assert found.value == 11.0
    assert found.message.startswith("input images have a standard deviation of 11 (median of 8")
    assert ImagesNotScaledCheck()(record(inputs={**wide, "std": 5.0}, columns=columns)) == []
    assert ImagesNotScaledCheck()(record(inputs=wide, columns={"std": {0: [2.0] * LAST}})) == []


def test_only_a_range_up_to_255_is_called_one() -> None:
    columns = {"std": {0: [9.0] * LAST}}
    (found,) = ImagesNotScaledCheck()(record(inputs=BYTES, columns=columns))
    assert found.meaning == "The images are not scaled: 0 to 255 instead of 0 to 1"
    decibels = {**BYTES, "minimum": -46.0, "maximum": 21.0}
    (found,) = ImagesNotScaledCheck()(record(inputs=decibels, columns=columns))
    assert found.meaning == "The images are not scaled: values from -46 to 21"


@pytest.mark.parametrize(
    ("largest", "spread", "is_found"), [(255.0, 60.0, True), (30.0, 1.0, False), (30.1, 1.0, True)]
)
def test_images_with_large_values(largest: float, spread: float, *, is_found: bool) -> None:
    inputs = {"minimum": 0.0, "maximum": largest, "mean": 0.5, "std": spread}
    run = record(inputs=inputs, columns={"std": {0: [2.1] * LAST}})
    assert [found.kind for found in ImagesNotScaledCheck()(run)] == ["images_not_scaled"] * is_found
    found = Rules("input_scale")(run)
    assert [one.kind for one in found] == ["images_not_scaled"] * is_found


@pytest.mark.parametrize(
    ("norm", "inputs", "is_found"),
    [
        ("InstanceNorm2d", {**BYTES, "minimum": -1000.0}, False),
        ("InstanceNorm2d", BYTES, False),
        ("BatchNorm2d", {**BYTES, "minimum": -1000.0}, False),
        ("BatchNorm2d", BYTES, True),
        ("BatchNorm2d", {**BYTES, "minimum": -39.0}, True),  # with noise
        ("BatchNorm2d", {**BYTES, "minimum": -41.0}, False),
        ("BatchNorm2d", {**BYTES, "maximum": 400.0}, True),
        ("BatchNorm2d", {**BYTES, "maximum": 401.0}, False),
        ("LayerNorm", BYTES, True),
        ("Tanh", {**BYTES, "minimum": -1000.0}, True),
    ],
)
def test_large_images_in_front_of_a_normalization(
    norm: str, inputs: dict[str, float], *, is_found: bool
) -> None:
    layers = [layer(0, followed_by=(norm,)), *(layer(i) for i in range(1, 6))]
    known: dict[str, Any] = {"inputs": inputs, "columns": {"std": {0: [99.0] * LAST}}}
    trains = {"batchnorm_gap/norm": [0.1] * LAST}
    for scalars in (trains, None):
        run = record(layers, scalars=scalars, **known)
        assert len(ImagesNotScaledCheck()(run)) == len(Rules("input_scale")(run)) == is_found
