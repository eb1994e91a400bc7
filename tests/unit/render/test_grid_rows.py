"""Sequences are drawn as one picture: a row of pixels per channel, each scaled on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from composed_steps import compose, kernels_of
from reduced_maps import planes_of, reduced
from torch import nn

from fmapboard.capture.kernels import read_kernels
from fmapboard.formats.tab_records import unpack
from fmapboard.records import Bytes8, Picture, PixelMark, Planes, StepData
from fmapboard.render.grid import draw_kernels, draw_maps, enlarge
from fmapboard.render.palettes import palette
from fmapboard.summary.build import SummaryBuilder
from fmapboard.summary.byte_limit import with_smaller_tiles

CONV = nn.Conv1d(1, 1, 1, device="meta")
GREY = palette("grey")


def rows(maps: torch.Tensor, **options: object) -> Planes:
    return planes_of(maps, CONV, **options)


def drawn(maps: torch.Tensor, **options: object) -> Bytes8:
    return draw_maps(rows(maps, **options), 0, GREY).pixels


def test_channels_are_rows_without_padding_each_scaled_between_its_own_extremes() -> None:
    maps = torch.tensor([[[0.0, 1.0, 2.0], [30.0, 10.0, 20.0]]])
    picture = draw_maps(rows(maps), 0, GREY)
    assert picture.pixels.tolist() == [[0, 127, 255], [255, 0, 127]]
    assert (picture.tile, picture.palette) == ((1, 3), None)


def test_the_layer_scale_applies_to_rows_too() -> None:
    maps = torch.tensor([[[0.0, 1.0], [0.0, 4.0]]])
    assert drawn(maps, scale="layer").tolist() == [[0, 63], [0, 255]]


def test_constant_rows_and_non_finite_values_are_marked() -> None:
    maps = torch.tensor([[[1.0, 1.0, 1.0], [0.0, float("nan"), 1.0]]])
    constant, nan = int(PixelMark.CONSTANT), int(PixelMark.NAN)
    pixels = drawn(maps)
    assert pixels[0].tolist() == [constant] * 3
    assert pixels[1, 1] == nan
    dead = draw_maps(rows(maps), 0, GREY, np.array([True, False])).pixels
    assert dead[0].tolist() == [int(PixelMark.DEAD)] * 3


def test_a_row_may_be_eight_tiles_long_and_is_averaged_only_along_positions() -> None:
    maps = torch.arange(48.0).reshape(1, 2, 24)
    planes = rows(maps, max_tile=2)
    assert (planes.pixels.shape, planes.block) == ((1, 2, 1, 12), 2)
    assert planes.lo[0].tolist() == [0.5, 24.5]
    assert rows(maps, max_tile=3).block == 1
    assert rows(maps, max_tile=None).block == 1


def test_at_most_max_channels_rows_are_drawn() -> None:
    assert drawn(torch.rand(1, 100, 7), max_channels=64).shape == (64, 7)


def test_the_description_says_how_rows_are_read_and_what_was_averaged() -> None:
    measured = reduced(torch.rand(1, 4, 1000), CONV)
    (picture,) = compose(measured=(measured,)).pictures
    assert picture.description.startswith(
        "feature maps of `conv` (Conv2d), shape [1, 4, 1000], channels 0…3; "
        "each channel scaled between its own extremes; downscaled: each pixel is the mean of 2 "
        "positions; one row of pixels per channel, one column per position; "
    )


def test_a_record_of_rows_has_format_1_and_names_the_layout() -> None:
    step = SummaryBuilder()(StepData(0, 1.0, measured=(reduced(torch.rand(1, 4, 9), CONV),)))
    header, _ = unpack(step.records[0].blobs)
    assert header["format"] == 1
    (picture,) = header["pictures"]
    given = {name: picture[name] for name in ("layout", "tile", "columns", "padding", "drawn")}
    assert given == {"layout": "rows", "tile": [1, 9], "columns": 1, "padding": 0, "drawn": 4}


def test_a_budget_shrinks_rows_along_positions() -> None:
    data = StepData(0, 1.0, measured=(reduced(torch.rand(1, 4, 512), CONV),))
    (measured,) = with_smaller_tiles(data, 32).measured
    assert measured.planes is not None
    assert measured.planes.pixels.shape == (1, 4, 1, 256)
    assert (measured.planes.layout, measured.planes.block) == ("rows", 2)


@pytest.mark.parametrize(("length", "size"), [(7, (10, 35)), (100, (8, 400)), (3000, (2, 3000))])
def test_rows_are_enlarged_in_files_as_long_as_they_stay_within_2048_px(
    length: int, size: tuple[int, int]
) -> None:
    picture = draw_maps(rows(torch.rand(1, 2, length), max_tile=None), 0, GREY)
    assert enlarge(picture).pixels.shape == size


def test_kernels_of_sequences_are_a_row_per_output_and_a_column_per_input() -> None:
    conv = nn.Conv1d(2, 3, 4)
    (pending,) = read_kernels({"conv": conv}, None)
    picture, peak = draw_kernels(pending.to_host())
    assert picture.pixels.shape == (3 * 2 + 1, 2 * 5 + 1)
    assert peak == float(conv.weight.detach().abs().max())
    step = compose(kernels=(pending.to_host(),))
    assert "a row per output, a column per input" in step.pictures[0].description
    header, _ = unpack(step.records[0].blobs)
    assert (header["format"], header["pictures"][0]["layout"]) == (1, "rows")


def test_a_1d_kernel_with_three_inputs_is_not_drawn_in_colours() -> None:
    (pending,) = read_kernels({"conv": nn.Conv1d(3, 5, 4)}, None)
    assert draw_kernels(pending.to_host())[0].palette is not None
    assert draw_kernels(kernels_of(5, 3, 4, 4))[0].palette is None


def test_a_picture_of_tiles_is_not_mistaken_for_rows() -> None:
    tiles = Picture(np.zeros((9, 44), np.uint8), tile=(1, 40))  # two tiles, padding around
    assert enlarge(tiles).pixels.shape == (9, 44)
