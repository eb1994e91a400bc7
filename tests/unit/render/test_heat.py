"""Heat over the input image: aspect, colours that also print in grey, even grey without heat."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.records import InputImage
from fmapboard.render.heat import GREYS, HEATS, dimmed, heat_over, resized

LUMA = (0.299, 0.587, 0.114)


def image(height: int = 12, width: int = 16) -> InputImage:
    values = np.linspace(0, 1, height * width, dtype=np.float32).reshape(1, height, width)
    return InputImage(0, values)


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [((120, 160), 56, (42, 56)), ((160, 120), 56, (56, 42)), ((12, 16), 56, (12, 16))],
)
def test_the_picture_has_the_inputs_aspect_and_is_not_enlarged(
    size: tuple[int, int], side: int, expected: tuple[int, int]
) -> None:
    assert (
        heat_over(dimmed(image(*size), side), np.ones((3, 4), np.float32)).pixels.shape == expected
    )


def test_the_hottest_place_is_the_brightest_in_grey_too() -> None:
    heat = np.zeros((3, 4), np.float32)
    heat[2, 0] = 5.0
    heat[0, 3] = -100.0
    picture = heat_over(dimmed(image(), 16), heat)
    assert picture.palette is not None
    grey = picture.palette[picture.pixels] @ LUMA
    assert np.unravel_index(grey.argmax(), grey.shape) in {
        (9 + y, x) for y in (0, 1, 2) for x in (0, 1)
    }
    assert grey[:4, 12:].max() < 100  # negative values have no heat


def test_lightness_never_falls_where_heat_rises() -> None:
    table = heat_over(dimmed(image(), 16), np.ones((3, 4), np.float32)).palette
    assert table is not None
    lightness = (table[: GREYS * HEATS] @ LUMA).reshape(HEATS, GREYS)
    assert (np.diff(lightness, axis=0) > -1).all()
    assert (np.diff(lightness[0]) > 0).all()  # the input


def test_without_heat_the_picture_is_one_even_grey() -> None:
    picture = heat_over(dimmed(image(), 16), None)
    assert picture.palette is not None
    assert picture.pixels.shape == (12, 16)
    assert np.unique(picture.palette[picture.pixels].reshape(-1, 3), axis=0).tolist() == [[128] * 3]


def test_resizing_averages_where_it_shrinks_and_keeps_a_constant() -> None:
    np.testing.assert_allclose(resized(np.full((5, 7), 3.0), 11, 3), 3.0)
    for at in range(16):
        assert resized(np.eye(16)[at][None], 1, 4).sum() == pytest.approx(0.25, abs=0.1)
    assert resized(np.array([[0.0, 1.0]]), 1, 4)[0].tolist() == [0.0, 0.25, 0.75, 1.0]
