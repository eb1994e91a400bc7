"""Pictures of the network's input: de-normalized, unchanged or stretched."""

from __future__ import annotations

import numpy as np
import pytest
from map_grids import INF, NAN, chelsea
from PIL import Image

from fmapboard.demo.bundled import bundled
from fmapboard.records import InputImage
from fmapboard.render.grid import draw_input_image


def test_a_photograph_is_shown_as_it_was_before_normalization() -> None:
    with Image.open(bundled("photographs/chelsea.jpg")) as image:
        original = np.array(image.convert("RGB").resize((40, 30)))
    values = chelsea(30, 40)[0].numpy()
    raster, how = draw_input_image(
        InputImage(0, values, ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    )
    assert np.array_equal(raster.pixels, original)
    assert how == "de-normalized with the given mean and standard deviation"


def test_an_input_between_0_and_1_is_shown_as_it_is() -> None:
    raster, how = draw_input_image(InputImage(0, np.array([[[0.0, 0.2, 1.0]]], np.float32)))
    assert raster.pixels.tolist() == [[0, 51, 255]]
    assert how == "values 0…1, unchanged"


def test_any_other_input_is_stretched_between_its_extremes_and_says_so() -> None:
    raster, how = draw_input_image(InputImage(0, np.array([[[-2.0, 0.0, 2.0]]], np.float32)))
    assert raster.pixels.tolist() == [[0, 128, 255]]
    assert how == "stretched between its extremes -2 and 2"


@pytest.mark.parametrize("channels", [1, 3])
def test_non_finite_pixels_of_the_input_are_marked_and_change_no_others(channels: int) -> None:
    values = np.full((channels, 1, 5), 0.2, np.float32)
    values[0, 0, 1:4] = [NAN, INF, -INF]
    values[0, 0, 4] = 1.0
    picture = draw_input_image(InputImage(0, values))[0].pixels[0].tolist()
    assert picture[0] == [51, 51, 51]
    assert picture[1:4] == [[255, 0, 255], [255, 0, 0], [0, 0, 255]]
