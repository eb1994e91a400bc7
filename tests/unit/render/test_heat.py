"""Heat over the input image: aspect, colours that also print in grey, even grey without heat."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.records import InputImage
from fmapboard.render.heat import dimmed, heat_over, resized

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
    picture = heat_over(dimmed(image(*size), side), np.ones((3, 4), np.float32))
    assert picture.pixels.shape == (*expected, 3)


def test_the_hottest_place_is_the_brightest_in_grey_too() -> None:
    heat = np.zeros((3, 4), np.float32)
    heat[2, 0] = 5.0
    heat[0, 3] = -100.0
    grey = heat_over(dimmed(image(), 16), heat).pixels @ LUMA
    assert np.unravel_index(grey.argmax(), grey.shape) in {
        (9 + y, x) for y in (0, 1, 2) for x in (0, 1)
    }
    assert grey[:4, 12:].max() < 100  # negative values have no heat


def test_lightness_never_falls_where_heat_rises() -> None:
    rising = np.linspace(0, 1, 256)[None]
    for grey in (24.0, 60.0, 96.0):  # of the input: black, between and white
        lightness = heat_over(np.full((1, 256), grey), rising).pixels[0] @ LUMA
        assert (np.diff(lightness) > -1).all()


def test_heat_that_rises_evenly_has_no_bands() -> None:
    pixels = heat_over(np.full((1, 256), 24.0), np.linspace(0, 1, 256)[None]).pixels[0]
    assert np.abs(np.diff(pixels.astype(int), axis=0)).max() <= 3
    plain = dimmed(image(16, 16), 16)
    assert len(np.unique(heat_over(plain, np.eye(16)).pixels[:, :, 2])) > 60  # the input's greys


def test_without_heat_the_picture_is_one_even_grey() -> None:
    picture = heat_over(dimmed(image(), 16), None)
    assert picture.pixels.shape == (12, 16, 3)
    assert np.unique(picture.pixels).tolist() == [128]


def test_resizing_averages_where_it_shrinks_and_keeps_a_constant() -> None:
    np.testing.assert_allclose(resized(np.full((5, 7), 3.0), 11, 3), 3.0)
    for at in range(16):
        assert resized(np.eye(16)[at][None], 1, 4).sum() == pytest.approx(0.25, abs=0.1)
    assert resized(np.array([[0.0, 1.0]]), 1, 4)[0].tolist() == [0.0, 0.25, 0.75, 1.0]
