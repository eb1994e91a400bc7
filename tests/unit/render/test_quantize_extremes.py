"""The smallest and the largest finite value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fmapboard.render.quantize import finite_extremes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -2.0, 3.0], (-2.0, 3.0, True)),
        ([math.nan, -2.0, math.inf], (-2.0, -2.0, False)),
        ([math.nan, math.inf], (math.inf, -math.inf, False)),
        ([], (math.inf, -math.inf, True)),
    ],
)
def test_non_finite_values_are_ignored(
    values: list[float], expected: tuple[float, float, bool]
) -> None:
    lo, hi, finite = finite_extremes(np.array(values, np.float32))
    assert (float(lo), float(hi), finite) == expected


def test_each_plane_has_its_own_extremes() -> None:
    maps = np.array([[[[1, 2], [3, 4]], [[5, math.nan], [7, 8]]]], np.float32)  # [1, 2, 2, 2]
    lo, hi, finite = finite_extremes(maps, (2, 3))
    assert (lo.tolist(), hi.tolist(), finite) == ([[1, 5]], [[4, 8]], False)
    assert lo.dtype == np.float64


def test_each_plane_of_finite_maps_has_its_own_extremes() -> None:
    lo, hi, finite = finite_extremes(np.array([[[[1.0, 2.0]], [[5.0, 3.0]]]]), (2, 3))
    assert (lo.tolist(), hi.tolist(), finite) == ([[1, 3]], [[2, 5]], True)
