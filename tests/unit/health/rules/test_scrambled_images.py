"""Input images whose axes were mixed up."""

from __future__ import annotations

import pytest
from check_records import record
from image_numbers import FLAT

from fmapboard.health.rules import ScrambledImagesCheck


@pytest.mark.parametrize(("ratio", "is_found"), [(0.59, True), (0.61, False)])
def test_images_whose_colours_take_turns_in_a_row_are_scrambled(
    ratio: float, is_found: bool
) -> None:
    found = ScrambledImagesCheck()(record(inputs={**FLAT, "std": 0.5, "interleaved": ratio}))
    assert [one.value for one in found] == [ratio] * is_found
    assert all("look scrambled" in one.message for one in found)
