"""Blocks of pixels averaged into one, for floats and for pixels that hold marks."""

from __future__ import annotations

import numpy as np

from fmapboard.records import PixelMark
from fmapboard.render.quantize import shrink, shrink_pixels


def test_a_block_at_the_border_is_the_mean_of_its_existing_pixels() -> None:
    maps = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    found, block = shrink(maps, 2)
    assert block == 2
    assert found.tolist() == [[[2.5, 4.5], [8.5, 10.5]]]


def test_pixels_at_the_border_are_repeated_to_fill_their_block_and_rounded_down() -> None:
    pixels = np.array([[0, 1, 9], [2, 3, 8]], np.uint8)
    found, marks = shrink_pixels(pixels, None, 2)
    assert (found.tolist(), marks) == ([[1, 8]], None)


def test_a_block_that_holds_a_mark_becomes_that_mark() -> None:
    marks = np.zeros((4, 4), np.uint8)
    marks[0, 3], marks[3, 3], marks[2, 2] = (
        PixelMark.NAN,
        PixelMark.NAN,
        PixelMark.POSITIVE_INFINITY,
    )
    found = shrink_pixels(np.zeros((4, 4), np.uint8), marks, 2)[1]
    assert found is not None
    assert found.tolist() == [[0, PixelMark.NAN], [0, PixelMark.POSITIVE_INFINITY]]
