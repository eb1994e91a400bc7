"""The state and the brightness of each cell of the overview's map."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fmapboard import plugin
from fmapboard.plugin.cell_states import (
    CODES,
    LEVELS,
    UNKNOWN_LEVEL,
    cell_codes,
    shading_by_change,
    shading_by_range,
)

STATIC = Path(plugin.__file__).parent / "static"
NAN, INF = float("nan"), float("inf")
DRAWN = np.array(False)  # no layer is an activation


def test_a_cell_has_the_most_severe_state_of_its_layer_at_its_step() -> None:
    columns = {
        "nonfinite": [0, 0.1, 0, 0, 0, 0, 0, 0, NAN, NAN],
        "minimum": [-1, -1, -2e4, -1, -1, -1, -1, -1, NAN, 0],
        "maximum": [1, 1, 1, 1, 1, 1, 1, 1, NAN, 0],
        "dead": [0, 0.9, 0.9, 0.5, 0.1, 0, 0.1, 0.09, NAN, NAN],
        "constant": [0, 0, 0, 0.6, 0.5, 0.1, 0, 0, NAN, NAN],
        "weights_change": [0.1, 0, 0, 0, 0, 0, 0, 0, NAN, NAN],
    }
    codes = cell_codes({name: np.array([row]) for name, row in columns.items()}, (1, 10), DRAWN)
    assert codes.dtype == np.uint8
    assert [CODES[code] for code in codes[0]] == [
        "fine", "nonfinite", "large", "mostly dead", "mostly constant", "constant", "dead",
        "unchanged", "unknown", "fine",
    ]  # fmt: skip


def test_a_dead_channel_of_an_activation_is_not_counted_as_constant_too() -> None:
    columns = {
        "nonfinite": np.zeros((1, 4)),
        "dead": np.array([[0.2, 0.2, 0.05, 0.1]]),
        "constant": np.array([[0.6, 0.6, 0.1, 0.1]]),
    }
    codes = cell_codes(columns, (1, 4), np.array([False, True, True, True]))
    assert [CODES[code] for code in codes[0]] == ["mostly constant", "dead", "fine", "dead"]


def test_nothing_is_known_without_columns() -> None:
    codes = cell_codes({}, (2, 3), DRAWN)
    assert codes.tolist() == [[0, 0, 0], [0, 0, 0]]
    shading = shading_by_range({}, codes)
    assert (shading.levels == UNKNOWN_LEVEL).all()
    assert np.isnan([shading.lo, shading.hi]).all()


def test_brightness_is_logarithmic_and_not_known_where_the_range_is_not() -> None:
    columns = {
        "minimum": np.array([[0], [0], [0], [NAN], [1], [-3e38]]),
        "maximum": np.array([[1], [10], [100], [NAN], [1], [3e38]]),
    }
    shading = shading_by_range(columns, cell_codes(columns, (6, 1), DRAWN))
    assert (round(shading.lo), round(shading.hi)) == (1, 100)
    top = LEVELS - 1
    assert shading.levels[:, 0].tolist() == [0, LEVELS // 2, top, UNKNOWN_LEVEL, 0, top]


def test_a_large_or_infinite_value_does_not_take_the_brightness_of_the_others() -> None:
    columns = {"minimum": np.zeros((4, 1)), "maximum": np.array([[1], [10], [1e30], [INF]])}
    shading = shading_by_range(columns, cell_codes(columns, (4, 1), DRAWN))
    assert round(shading.hi) == 10
    assert shading.levels[:, 0].tolist() == [0, LEVELS - 1, LEVELS - 1, LEVELS - 1]


def test_similar_values_do_not_look_different() -> None:
    columns = {"minimum": np.zeros((1, 2)), "maximum": np.array([[1.0, 1.1]])}
    shading = shading_by_range(columns, cell_codes(columns, (1, 2), DRAWN))
    assert shading.hi / shading.lo == pytest.approx(10)
    assert np.ptp(shading.levels) <= 1


@pytest.mark.parametrize(("maps", "of"), [(0.5, "maps"), (NAN, "weights")])
def test_change_is_that_of_the_weights_only_if_that_of_no_map_is_known(
    maps: float, of: str
) -> None:
    columns = {"change": np.array([[NAN], [maps]]), "weights_change": np.array([[0.1], [0.2]])}
    shading = shading_by_change(columns, cell_codes(columns, (2, 1), DRAWN))
    assert shading.of == of
    assert (shading.levels == UNKNOWN_LEVEL).sum() == (of == "maps")


def test_the_front_end_has_the_same_codes_and_levels() -> None:
    text = (STATIC / "state/health_states.js").read_text()
    codes = {name: int(code) for name, code in re.findall(r"^  ([A-Z_]+): (\d+),$", text, re.M)}
    assert codes == {code.upper().replace(" ", "_"): i for i, code in enumerate(CODES)}
    text = (STATIC / "draw/health_colours.js").read_text()
    numbers = dict(re.findall(r"^export const ([A-Z_]+) = (\d+);$", text, re.M))
    assert numbers == {"LEVELS": str(LEVELS), "UNKNOWN_LEVEL": str(UNKNOWN_LEVEL)}
