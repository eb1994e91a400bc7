"""Input images with hardly any contrast."""

from __future__ import annotations

from typing import Any

import pytest
from check_records import LAST, Rules, layer, record
from image_numbers import FLAT

from fmapboard.health.rules import FlatImagesCheck


@pytest.mark.parametrize(("spread", "is_found"), [(0.029, True), (0.031, False)])
def test_images_with_a_small_deviation(spread: float, *, is_found: bool) -> None:
    inputs = {"minimum": 0.0, "maximum": 1.0, "mean": 0.5, "std": spread}
    run = record(inputs=inputs, columns={"std": {0: [2.1] * LAST}})
    assert [found.kind for found in FlatImagesCheck()(run)] == ["flat_images"] * is_found
    assert [found.kind for found in Rules("input_scale")(run)] == ["flat_images"] * is_found


@pytest.mark.parametrize(
    ("norm", "is_found_in_eval_mode"), [("InstanceNorm2d", False), ("BatchNorm2d", True)]
)
def test_flat_images_in_front_of_a_normalization(norm: str, *, is_found_in_eval_mode: bool) -> None:
    layers = [layer(0, followed_by=(norm,)), *(layer(i) for i in range(1, 6))]
    known: dict[str, Any] = {"inputs": FLAT, "columns": {"std": {0: [99.0] * LAST}}}
    trains = {"batchnorm_gap/norm": [0.1] * LAST}
    assert Rules("input_scale")(record(layers, scalars=trains, **known)) == []
    found = FlatImagesCheck()(record(layers, **known))  # BatchNorm does not adapt in eval mode
    assert len(found) == len(Rules("input_scale")(record(layers, **known))) == is_found_in_eval_mode


def test_constant_images_have_no_scale() -> None:
    constant = {"minimum": 0.5, "maximum": 0.5, "mean": 0.5, "std": 0.0}
    assert FlatImagesCheck()(record(inputs=constant)) == []
    assert Rules("input_scale")(record(inputs=constant)) == []
