"""Reading stored pictures back: all tiles, or one, for which the rest need not be decoded."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fmapboard.plugin.picture_values import decoded, tile_of, tiles_of

GRID = {"tile": [5, 3], "drawn": 7, "columns": 3, "padding": 2}


def picture(mode: str) -> tuple[bytes, Any]:
    """A grid of random tiles as a PNG, and its pixels."""
    pixels = np.random.default_rng(0).integers(0, 256, (2 + 3 * 7, 2 + 3 * 5), np.uint8)
    image = Image.fromarray(pixels)
    if mode == "P":
        image.putpalette(bytes(range(256)) * 3)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue(), pixels


@pytest.mark.parametrize("mode", ["L", "P"])
def test_one_tile_is_the_same_as_among_all(mode: str) -> None:
    png, pixels = picture(mode)
    tiles = tiles_of(pixels, GRID)
    assert tiles.shape == (7, 5, 3)
    for i, tile in enumerate(tiles):
        found = tile_of(png, GRID, i)
        assert found is not None
        assert found[0] == mode
        assert (found[1] == tile).all()
    assert tile_of(png, GRID, 7) is None


def test_a_tile_does_not_need_the_rows_below_it() -> None:
    png, pixels = picture("L")
    cut = png[: len(png) - len(png) // 3]
    assert decoded(cut) is None
    found = tile_of(cut, GRID, 1)
    assert found is not None
    assert (found[1] == tiles_of(pixels, GRID)[1]).all()


@pytest.mark.parametrize("wrong", [{"columns": 0}, {"tile": [5]}, {"padding": -1}, {"drawn": 99}])
def test_a_header_that_does_not_fit_gives_no_tile(wrong: dict[str, Any]) -> None:
    png, pixels = picture("L")
    assert tile_of(png, {**GRID, **wrong}, 0 if "drawn" not in wrong else 50) is None
    assert tiles_of(pixels, {**GRID, **wrong}) is None
