"""Of an output as many rows are copied as 1 MB and 4,096 rows allow."""

from __future__ import annotations

import math

import pytest

from fmapboard.gradients.outputs import strides

HALF_MEGABYTE = 2**19


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), ()),
        ((64,), (1,)),
        ((10_000,), (3,)),
        ((64, 1000), (1, 1)),
        ((8192, 10), (2, 1)),
        ((256, 1000), (2, 1)),
        ((8, 21, 64, 64), (1, 1, 3, 3)),
        ((256, 10, 2, 2), (1, 1, 1, 1)),
        ((8, 128, 65), (1, 1, 1)),
        ((512, 3, 8000), (512, 1, 1)),
    ],
)
def test_the_step_along_each_axis(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert strides(shape, 4, HALF_MEGABYTE) == expected
    kept = [-(-side // step) for side, step in zip(shape, expected, strict=True)]
    assert 4 * math.prod(kept) <= HALF_MEGABYTE


def test_an_output_of_which_one_sample_is_too_large_is_not_copied() -> None:
    assert strides((8, 1024, 50_257), 2, HALF_MEGABYTE) is None
    assert strides((2, 200_000), 4, HALF_MEGABYTE) is None
