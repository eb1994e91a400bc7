"""Labelled pictures: every tile below its number, the layer's name above, nothing else changed."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.imaging.write_images import labelled
from fmapboard.records import (
    Bytes8,
    LayerCall,
    LayerMeasurement,
    Layout,
    LoggedStep,
    Picture,
    Statistics,
    TaggedPictures,
)
from fmapboard.render.grid import PADDING, columns, grid
from fmapboard.top_patches import small_text

CALL = LayerCall("block[dw].conv", "Conv2d", (12, 3, 3, 3), 0)


def step(tiles: Bytes8) -> LoggedStep:
    """A step with one grid of maps, u8 [C, H, W]."""
    count, height, width = tiles.shape
    drawn = Picture(grid(tiles, columns(count), PADDING, 0), tile=(height, width))
    pictures = TaggedPictures("feature_maps_12x3x3x3/conv", "feature_maps", (drawn,), CALL)
    values, none = np.zeros(count), np.zeros(count, np.int64)
    statistics = Statistics(values, values, values, values, none, none, none, none > 0)
    measured = LayerMeasurement(CALL, "feature_maps", None, statistics)
    return LoggedStep(0, 0.0, (pictures,), statistics=(measured,))


def only(labelled_step: LoggedStep) -> Bytes8:
    ((picture,),) = (tagged.samples for tagged in labelled_step.pictures)
    assert picture.palette is None
    return picture.pixels


def places(page: Bytes8, part: Bytes8) -> list[tuple[int, int]]:
    """Where a part, u8 [h, w], is in a page, u8 [H, W, 3]."""
    windows = np.lib.stride_tricks.sliding_window_view(page[..., 0], part.shape)
    return [(int(y), int(x)) for y, x in np.argwhere((windows == part).all((2, 3)))]


def written(page: Bytes8, number: int, top: int, left: int) -> bool:
    line = small_text.blank_page(small_text.HEIGHT, small_text.text_width(str(number)))
    small_text.write(line, str(number), 0, 0)
    return np.array_equal(page[top:, left:][: line.shape[0], : line.shape[1]], line)


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_each_tile_is_there_once_below_its_number(count: int) -> None:
    tiles = np.random.default_rng(0).integers(0, 256, (count, 40, 33), np.uint8)
    page = only(labelled(step(tiles)))
    for number, tile in enumerate(tiles):
        ((top, left),) = places(page, tile)
        assert written(page, number, top - 4 - small_text.HEIGHT, left - 1)
        assert (page[top - 1, left : left + 33] == 190).all()  # the frame


def test_small_tiles_are_enlarged_and_far_enough_apart_for_their_numbers() -> None:
    tiles = np.arange(120, dtype=np.uint8).reshape(120, 1, 1) + 60
    page = only(labelled(step(tiles)))
    assert [places(page, np.full((32, 32), value, np.uint8)) != [] for value in (60, 179)] == [
        True, True,
    ]  # fmt: skip
    narrow = only(labelled(step(np.arange(160, dtype=np.uint8).reshape(4, 40, 1))))
    assert len(places(narrow, np.arange(160, dtype=np.uint8).reshape(4, 40, 1)[3])) == 1
    ten_per_row = only(labelled(step(np.zeros((120, 40, 1), np.uint8))))
    assert ten_per_row.shape[1] >= 10 * (small_text.text_width("119") + 4)


def test_the_name_is_above_and_names_that_the_font_lacks_are_escaped() -> None:
    page = only(labelled(step(np.zeros((1, 40, 200), np.uint8))))
    assert (page[:12] < 255).any()
    found = []
    for name in ("猫", "\\u732b"):
        call = LayerCall(name, "Conv2d", (1, 1, 1, 1), 0)
        picture = TaggedPictures("gradients_1x1x1x1/x", "gradients", (Picture(page),), call)
        found.append(only(labelled(LoggedStep(0, 0.0, (picture,)))))
    assert found[0].shape[0] > page.shape[0]
    assert np.array_equal(*found)


def test_rows_of_a_sequence_have_numbers_to_their_left() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (8, 300), np.uint8)
    drawn = Picture(rows, tile=(1, 300))
    one = step(np.zeros((8, 40, 40), np.uint8))
    tagged = TaggedPictures("feature_maps_x/conv", "feature_maps", (drawn,), CALL, layout="rows")
    page = only(labelled(LoggedStep(0, 0.0, (tagged,), statistics=one.statistics)))
    ((top, left),) = places(page, rows.repeat(4, 0).repeat(4, 1))
    assert written(page, 0, top, left - 10)
    assert written(page, 3, top + 12, left - 10)


def matrix(shape: tuple[int, int, int, int], layout: Layout) -> tuple[Bytes8, Bytes8]:
    """The tiles u8 [rows, columns, h, w] of a matrix of kernels, and its labelled page."""
    tiles = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)
    drawn = Picture(grid(tiles.reshape(-1, *shape[2:]), shape[1], 1, 0), grey, shape[2:])
    tagged = TaggedPictures("kernels_x/conv", "kernels", (drawn,), CALL, layout=layout)
    return tiles, only(labelled(LoggedStep(0, 0.0, (tagged,))))


@pytest.mark.parametrize(
    ("shape", "layout", "factor"),
    [((12, 24, 3, 3), "tiles", 11), ((5, 2, 1, 7), "rows", 5), ((1, 16, 3, 3), "tiles", 11)],
)
def test_rows_and_columns_of_a_matrix_of_kernels_have_numbers(
    shape: tuple[int, int, int, int], layout: Layout, factor: int
) -> None:
    tiles, page = matrix(shape, layout)
    enlarged = tiles.repeat(factor, 2).repeat(factor, 3)
    ((top, left),) = places(page, enlarged[0, 0])
    down, across = (factor * (side + 1) for side in shape[2:])
    for row in range(shape[0]):
        for column in range(shape[1]):
            y, x = top + row * down, left + column * across
            assert (
                page[y:, x:][: down - factor, : across - factor, 0] == enlarged[row, column]
            ).all()
            if row == 0:
                assert written(page, column, y - factor - small_text.HEIGHT - 4, x)
        has_number = shape[0] > 1 and row % -(-11 // down) == 0
        assert written(page, row, top + row * down, 4) == has_number


def test_numbers_of_narrow_columns_do_not_overlap() -> None:
    _, page = matrix((2, 40, 32, 1), "tiles")  # 2 px per column, 12 for two digits
    left = 4 + 6 + 4 + 1
    top = page.shape[0] - 4 - (2 * 33 + 1) - 4 - small_text.HEIGHT
    assert [c for c in range(40) if written(page, c, top, left + 2 * c)] == list(range(0, 40, 8))


def test_the_input_is_not_changed() -> None:
    picture = TaggedPictures(
        "network_input/sample_0", "network_input", (Picture(np.zeros((4, 4), np.uint8)),)
    )
    assert labelled(LoggedStep(0, 0.0, (picture,))).pictures == (picture,)
