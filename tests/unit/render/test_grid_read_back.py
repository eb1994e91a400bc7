"""Stored grids can be read back: values within 2 of 255, marks exactly."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from decoded_pictures import decode_png
from map_grids import planes_of
from read_grid import read_maps
from reduced_maps import random_maps
from torch import nn

from fmapboard.records import LoggedStep, PixelMark, Planes, TaggedPictures
from fmapboard.render import png
from fmapboard.render.grid import draw_maps
from fmapboard.render.palettes import LEVEL_OF_PIXEL, PALETTES, PIXEL_OF_LEVEL, palette
from fmapboard.writers.folder import FolderWriter


def stored(planes: Planes, colours: str, sample: int = 0, dead: np.ndarray | None = None) -> bytes:
    return png.encode(draw_maps(planes, sample, palette(colours), dead))


def decoded(data: bytes) -> np.ndarray:
    """Grey as [H, W]; a palette picture as RGB, as any program shows it."""
    image = decode_png(data)
    return np.array(image if image.mode == "L" else image.convert("RGB"))


def read(planes: Planes, data: bytes, colours: str, sample: int = 0) -> tuple[np.ndarray, ...]:
    tile = (planes.pixels.shape[2], planes.pixels.shape[3])
    lo, hi = planes.lo[sample], planes.hi[sample]
    return read_maps(decoded(data), lo, hi, tile, palette(colours))


@pytest.mark.parametrize("colours", PALETTES)
@pytest.mark.parametrize("channels", [1, 2, 5, 17])
def test_values_are_read_back_within_2_of_255_of_the_range(colours: str, channels: int) -> None:
    maps = random_maps(2, channels, 9, 14) * 3 - 1
    planes = planes_of(maps, zero_centered=palette(colours).zero_centered)
    for sample in range(2):
        values, marks = read(planes, stored(planes, colours, sample), colours, sample)
        assert not marks.any()
        span = (planes.hi - planes.lo)[sample][:, None, None]
        below = (maps[sample].double().numpy() - values) / span * 255
        assert below.min() >= -1e-4, "values are rounded down"
        assert below.max() < 2
        assert values.shape == (channels, 9, 14)


@pytest.mark.parametrize("colours", PALETTES)
def test_marks_are_read_back_exactly_and_so_are_the_values_next_to_them(colours: str) -> None:
    maps = random_maps(1, 10, 6, 6, seed=1)
    maps[0, 0, 0, 0], maps[0, 1, 2, 3], maps[0, 2, 5, 5] = math.nan, math.inf, -math.inf
    maps[0, 3], maps[0, 4] = 0.3, 0.0
    maps[0, 5] = math.nan
    planes = planes_of(maps, zero_centered=palette(colours).zero_centered)
    dead = np.arange(10) == 4
    values, marks = read(planes, stored(planes, colours, dead=dead), colours)
    expected = np.zeros((10, 6, 6), np.uint8)
    expected[0, 0, 0], expected[1, 2, 3], expected[2, 5, 5] = 251, 252, 253
    expected[3], expected[4], expected[5] = 254, 255, 251
    assert np.array_equal(marks, expected)
    assert np.array_equal(np.isnan(values), expected != 0)
    good = expected == 0
    span = np.broadcast_to((planes.hi - planes.lo)[0][:, None, None], good.shape)
    off = (maps[0].double().numpy()[good] - values[good]) / span[good] * 255
    assert np.abs(off).max() < 2


@pytest.mark.parametrize("colours", PALETTES)
def test_all_levels_of_a_palette_are_distinguishable(colours: str) -> None:
    pixels = PIXEL_OF_LEVEL.reshape(1, 1, 10, 25)
    planes = Planes(
        pixels, None, np.zeros((1, 1), bool), np.zeros((1, 1)), np.full((1, 1), 255.0),
        (1, 1, 10, 25), 1,
    )  # fmt: skip
    values, _ = read(planes, stored(planes, colours), colours)
    assert np.array_equal(values[0].ravel(), PIXEL_OF_LEVEL.astype(float))


def test_the_grey_of_an_index_is_at_most_one_below_its_pixel() -> None:
    below = np.arange(256) - PIXEL_OF_LEVEL[LEVEL_OF_PIXEL].astype(int)
    assert sorted(set(below.tolist())) == [0, 1]
    assert np.count_nonzero(below) == 6
    assert LEVEL_OF_PIXEL[[0, 255]].tolist() == [0, 249]
    assert PixelMark.PADDING == 250


def test_a_plain_grey_grid_that_a_browser_decodes_to_rgb_reads_back_too() -> None:
    maps = random_maps(1, 6, 20, 20, seed=2)
    planes = planes_of(maps)
    rgb = np.repeat(decoded(stored(planes, "grey"))[..., None], 3, axis=2)
    values, marks = read_maps(rgb, planes.lo[0], planes.hi[0], (20, 20), palette("grey"))
    assert not marks.any()
    direct, _ = read(planes, stored(planes, "grey"), "grey")
    assert np.array_equal(values, direct)


def test_a_colour_that_is_not_in_the_palette_is_refused() -> None:
    pixels = np.full((4, 4, 3), 255, np.uint8)
    with pytest.raises(ValueError, match=r"not in the palette 'viridis'"):
        read_maps(pixels, np.zeros(1), np.ones(1), (4, 4), palette("viridis"))


def test_a_real_layer_reads_back_from_a_file_on_disk(tmp_path: Path) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 3)
    maps = conv(random_maps(1, 3, 40, 50, seed=3)).detach()
    planes = planes_of(maps)
    picture = TaggedPictures(
        "feature_maps_8x3x3x3/conv", "feature_maps", (draw_maps(planes, 0, palette("grey")),)
    )
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=(picture,)))
    values, _ = read(planes, (tmp_path / "conv.png").read_bytes(), "grey")
    off = (maps[0].double().numpy() - values) / (planes.hi - planes.lo)[0][:, None, None] * 255
    assert np.abs(off).max() < 1.001
