"""Which steps the locked scale of a film leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.health.states import DEAD, FINE, IS_LARGE, NONFINITE
from fmapboard.plugin.film_scale import FAR, FAULTY, LARGE, are_far, left_out


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


def test_large_dead_and_nonfinite_steps_are_left_out_unless_all_are_so() -> None:
    codes = [[FINE, IS_LARGE, DEAD], [DEAD, IS_LARGE, DEAD], [NONFINITE, FINE, DEAD]]
    ones = [[1.0, 2e4, 1.0], [1.0, 2e4, 1.0], [1.0, 1.0, 1.0]]
    assert reasons(ones, codes) == [[0, LARGE, 0], [FAULTY, LARGE, 0], [FAULTY, 0, 0]]
    all_large = [[IS_LARGE]] * 3
    assert reasons([[2e4]] * 3, all_large) == [[0]] * 3


def test_a_scale_of_the_layer_leaves_out_the_steps_of_any_channel() -> None:
    codes = [[FINE, FINE], [FINE, IS_LARGE], [FINE, FINE], [FINE, FINE], [FINE, FINE]]
    hi = [[1.0, 1.0], [1.0, 2e4], [1.0, 50.0], [1.0, 1.0], [1.0, 1.0]]
    found = reasons(hi, codes, is_of_layer=True)
    assert found == [[0, 0], [LARGE, LARGE], [FAR, FAR], [0, 0], [0, 0]]
    assert reasons(hi, codes) == [[0, 0], [0, LARGE], [0, FAR], [0, 0], [0, 0]]
    unknown = left_out(*np.full((3, 2, 1), np.nan), is_of_layer=True)
    assert unknown.tolist() == [[0], [0]]
