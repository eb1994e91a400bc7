"""The brightness of each cell of the overview's map."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fmapboard.health.states import worst_states
from fmapboard.plugin.routes.health import (
    LEVELS,
    UNKNOWN_LEVEL,
    shading_of,
)

STATIC = Path(__file__).parents[3] / "src" / "fmapboard" / "plugin" / "static"
NAN, INF = float("nan"), float("inf")
DRAWN = np.array(False)  # no layer is an activation


def test_nothing_is_known_without_numbers() -> None:
    columns = dict.fromkeys(("minimum", "maximum"), np.full((2, 3), NAN))
    shading = shading_of(columns, np.zeros((2, 3), np.uint8))
    assert (shading.levels == UNKNOWN_LEVEL).all()
    assert (shading.lo, shading.hi) == (None, None)


def test_brightness_is_logarithmic_and_not_known_where_the_range_is_not() -> None:
    columns = {
        "minimum": np.array([[0], [0], [0], [NAN], [1], [-3e38]]),
        "maximum": np.array([[1], [10], [100], [NAN], [1], [3e38]]),
    }
    shading = shading_of(columns, worst_states(columns, DRAWN, (6, 1)))
    assert (round(shading.lo), round(shading.hi)) == (1, 100)
    top = LEVELS - 1
    assert shading.levels[:, 0].tolist() == [0, LEVELS // 2, top, UNKNOWN_LEVEL, 0, top]


def test_a_large_or_infinite_value_does_not_take_the_brightness_of_the_others() -> None:
    columns = {"minimum": np.zeros((4, 1)), "maximum": np.array([[1], [10], [1e30], [INF]])}
    shading = shading_of(columns, worst_states(columns, DRAWN, (4, 1)))
    assert round(shading.hi) == 10
    assert shading.levels[:, 0].tolist() == [0, LEVELS - 1, LEVELS - 1, LEVELS - 1]


def test_cells_with_a_fault_do_not_take_the_brightness_of_the_others() -> None:
    columns = {
        "minimum": np.zeros((4, 1)),
        "maximum": np.array([[1], [10], [100], [1000]]),
        "dead": np.array([[0.0], [0.0], [0.2], [0.9]]),
    }
    shading = shading_of(columns, worst_states(columns, DRAWN, (4, 1)))
    assert (round(shading.lo), round(shading.hi)) == (1, 10)


def test_similar_values_do_not_look_different() -> None:
    columns = {"minimum": np.zeros((1, 2)), "maximum": np.array([[1.0, 1.1]])}
    shading = shading_of(columns, worst_states(columns, DRAWN, (1, 2)))
    assert shading.hi / shading.lo == pytest.approx(10)
    assert np.ptp(shading.levels) <= 1


def test_the_front_end_has_the_same_levels() -> None:
    text = (STATIC / "model/health_states.js").read_text()
    numbers = dict(re.findall(r"^export const ([A-Z_]+) = (\d+);$", text, re.M))
    assert numbers == {"LEVELS": str(LEVELS), "UNKNOWN_LEVEL": str(UNKNOWN_LEVEL)}
