"""Which steps the locked scale of a film leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.health.states import DEAD, FINE, IS_LARGE, NONFINITE
from fmapboard.plugin.film_scale import (
    DEAD_STEP,
    FAR_STEP,
    LARGE_STEP,
    NONFINITE_STEP,
    are_far,
    left_out,
)


@pytest.mark.parametrize(
    ("magnitudes", "least"),
    [
        ([1, 2, 1, 50, 2, 1, 1, 1], 50),
        ([1, 50, 500, 1, 2, 1, 1, 1], 50),  # two of eight
        ([1, 1, 1, 9, 1], np.inf),
        ([1, 50, 50, 50, 1, 1], np.inf),  # half of them are no exception
        ([1, 50], np.inf),
        ([0, 0, 3, 3, 40], 40),
        ([1, 1, 1, 1, 1, 4, 16, 64, 256], 16),  # growing, without a gap
        ([1, 1, 1, 256, 256, 256], np.inf),
    ],
)
def test_few_magnitudes_far_beyond_the_others_are_exceptions(
    magnitudes: list[float], least: float
) -> None:
    column = np.array(magnitudes, float)[:, None]
    usual = np.ones_like(column)
    far = are_far(np.hstack([usual, column]))
    assert far[:, 1].tolist() == [magnitude >= least for magnitude in magnitudes]
    assert not far[:, 0].any()


def reasons(hi: list[list[float]], codes: list[list[int]], *, is_of_layer: bool = False) -> object:
    high = np.array(hi, float)
    return left_out(0 * high, high, np.array(codes, float), is_of_layer=is_of_layer).tolist()


def test_large_dead_and_nonfinite_steps_are_left_out_while_most_steps_remain() -> None:
    few = [[FINE], [FINE], [FINE], [FINE], [IS_LARGE], [NONFINITE], [DEAD]]
    ones = [[1.0]] * 7
    found = reasons(ones, few)
    assert found == [[0], [0], [0], [0], [LARGE_STEP], [NONFINITE_STEP], [DEAD_STEP]]
    one_fine = [[FINE], *[[DEAD]] * 2, *[[IS_LARGE]] * 4]
    assert reasons(ones, one_fine) == [[0]] * 7  # not without the dead ones either
    half = [*[[FINE]] * 3, *[[DEAD]] * 3]
    assert reasons(ones[:6], half) == [[0]] * 6
    all_large = [[IS_LARGE]] * 3
    assert reasons([[2e4]] * 3, all_large) == [[0]] * 3


def test_steps_without_a_finite_value_do_not_count_among_those_that_remain() -> None:
    hi = np.array([[1.0], [np.nan], [0.0], [0.0]])
    codes = np.array([[FINE], [NONFINITE], [NONFINITE], [NONFINITE]], float)
    found = left_out(0 * hi, hi, codes, is_of_layer=False)
    assert found.tolist() == [[0], [NONFINITE_STEP], [NONFINITE_STEP], [NONFINITE_STEP]]
    none = left_out(*np.full((2, 3, 1), np.nan), codes[1:], is_of_layer=False)
    assert none.tolist() == [[0], [0], [0]]


def test_a_scale_of_the_layer_leaves_out_the_steps_of_any_channel() -> None:
    codes = [[FINE, FINE], [FINE, IS_LARGE], [FINE, FINE], [FINE, FINE], [FINE, FINE]]
    hi = [[1.0, 1.0], [1.0, 2e4], [1.0, 50.0], [1.0, 1.0], [1.0, 1.0]]
    found = reasons(hi, codes, is_of_layer=True)
    assert found == [[0, 0], [LARGE_STEP] * 2, [FAR_STEP] * 2, [0, 0], [0, 0]]
    assert reasons(hi, codes) == [[0, 0], [0, LARGE_STEP], [0, FAR_STEP], [0, 0], [0, 0]]
    unknown = left_out(*np.full((3, 2, 1), np.nan), is_of_layer=True)
    assert unknown.tolist() == [[0], [0]]
