"""Rows of crops: where a crop lies in its cell, the mark, and the numbers as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmapboard.records import Bytes8, Crop, LayerCall, LayerPatches
from fmapboard.top_patches import small_text
from fmapboard.top_patches.pictures import (
    OUTSIDE,
    PALE,
    RowLayout,
    draw_patches,
    number_that_fits,
    outside,
)

RED, YELLOW = (200, 0, 0), (255, 221, 0)


def crop(field: tuple[int, int, int, int], size: tuple[int, int] = (40, 40)) -> Crop:
    top, left, bottom, right = field
    pixels = np.full((bottom - top, right - left, 3), RED, np.uint8)
    return Crop(0.5, 0, "a.png", (0, 0), field, size, (20.0, 30.0), pixels)


def patches(*rows: tuple[Crop, ...]) -> LayerPatches:
    return LayerPatches(LayerCall("conv", "Conv2d"), len(rows), rows, k=2, images=1, cell=(8, 8))


@pytest.mark.parametrize(
    ("field", "rows", "columns"),
    [
        ((10, 10, 18, 18), (0, 64), (0, 64)),
        ((0, 10, 6, 18), (16, 64), (0, 64)),  # cut off at the top
        ((34, 36, 40, 40), (0, 48), (0, 32)),  # at the bottom and on the right
    ],
)
def test_a_field_that_is_cut_off_lies_over_the_edge_of_the_image(
    field: tuple[int, int, int, int], rows: tuple[int, int], columns: tuple[int, int]
) -> None:
    both = patches((crop((10, 10, 18, 18)), crop(field)))
    layout = RowLayout.of(both)
    assert (layout.cell, layout.factor) == ((64, 64), 8)
    (page,) = draw_patches(both)
    cell = page.pixels[layout.top :, layout.left + layout.across :][:64, :64]
    expected = outside(64, 64)
    expected[slice(*rows), slice(*columns)] = RED
    assert np.array_equal(cell, expected)


def line(text: str) -> Bytes8:
    """A line of text alone."""
    page = small_text.blank_page(small_text.HEIGHT, small_text.text_width(text))
    small_text.write(page, text, 0, 0)
    return page


def test_text_that_does_not_fit_is_cut_off() -> None:
    page = small_text.blank_page(5, 8)
    small_text.write(page, "12", 1, 3)
    assert np.array_equal(page[1:, 3:], line("12")[:4, :5])
    assert (page[0] == 255).all()
    assert (page[:, :3] == 255).all()


def test_what_is_outside_of_the_image_is_striped() -> None:
    stripes = outside(9, 12)
    assert {tuple(colour) for colour in stripes.reshape(-1, 3).tolist()} == set(OUTSIDE)
    assert (stripes[0, :6] == np.repeat(OUTSIDE, 3, 0)).all()
    assert (stripes[1:, :-1] == stripes[:-1, 1:]).all()  # along the diagonals


def test_the_number_of_a_channel_without_a_positive_value_is_pale() -> None:
    field = (10, 10, 18, 18)
    values = (0.5, 0.0, -1.0)
    (page,) = draw_patches(patches(*[(replace(crop(field), value=value),) for value in values]))
    left = RowLayout.of(patches((crop(field),))).left
    rows = np.split(page.pixels[RowLayout.of(patches((crop(field),))).top :, :left], 3)
    assert rows[0].min() < PALE
    assert [row.min() >= PALE for row in rows[1:]] == [True, True]
    assert [row.min() < 255 for row in rows[1:]] == [True, True]


def test_a_square_marks_the_position_where_the_field_is_more_than_half_of_the_image() -> None:
    large, small = crop((0, 0, 30, 40)), crop((0, 0, 20, 40))
    found = patches((large, small))
    layout, (page,) = RowLayout.of(found), draw_patches(found)
    yellow = np.argwhere((page.pixels == YELLOW).all(-1)) - (layout.top, layout.left)
    assert yellow.mean(0).tolist() == [20.0, 30.0]
    assert len(yellow) == 24  # the outline of 7×7


def test_pages_of_64_channels_have_the_number_and_the_value_of_each() -> None:
    found = patches(*[(crop((10, 10, 18, 18)),)] * 65)
    first, second = draw_patches(found)
    layout = RowLayout.of(found)
    assert first.pixels.shape[0] == layout.top + 64 * layout.down
    assert second.pixels.shape[0] == layout.top + layout.down
    label = (second.pixels[:, : layout.left] != 255).any(-1)
    assert label.sum() == (line("64") != 255).any(-1).sum()
    text = line("0.5")
    found_text = second.pixels[layout.top + layout.cell[0] + 3 :, layout.left :]
    assert np.array_equal(found_text[: text.shape[0], : text.shape[1]], text)


def test_a_number_has_as_many_digits_as_fit() -> None:
    assert [number_that_fits(-123456.0, most) for most in (60, 40)] == [
        "-1.235e+05",
        "-1e+05",
    ]
