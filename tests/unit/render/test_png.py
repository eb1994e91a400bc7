"""PNG files decode to exactly the pixels that were encoded, and are small."""

from __future__ import annotations

import re
import struct
import zlib

import numpy as np
import pytest
from decoded_pictures import decode_png
from PIL import Image

from fmapboard.demo.bundled import bundled
from fmapboard.records import Picture
from fmapboard.render import png
from fmapboard.render import png as deflate
from fmapboard.render.grid import grid
from fmapboard.render.palettes import PALETTES, palette

SIZES = [(1, 1), (1, 5000), (5000, 1), (7, 13), (224, 224), (2, 40_000)]


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_grey_decodes_bit_exactly(size: tuple[int, int]) -> None:
    pixels = noise(*size)
    image = decode_png(png.encode(Picture(pixels)))
    assert image.mode == "L"
    assert np.array_equal(np.array(image), pixels)


@pytest.mark.parametrize("size", SIZES)
def test_rgb_decodes_bit_exactly(size: tuple[int, int]) -> None:
    pixels = noise(*size, 3)
    image = decode_png(png.encode(Picture(pixels)))
    assert image.mode == "RGB"
    assert np.array_equal(np.array(image), pixels)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PALETTES)
def test_palette_pictures_decode_bit_exactly_as_indices_and_as_colours(
    size: tuple[int, int], name: str
) -> None:
    indices, table = noise(*size), palette(name).table
    image = decode_png(png.encode(Picture(indices, table)))
    assert image.mode == "P"
    assert np.array_equal(np.array(image), indices)
    assert np.array_equal(np.array(image.convert("RGB")), table[indices])


@pytest.mark.parametrize("value", [0, 255])
def test_pictures_of_one_value_decode_bit_exactly(value: int) -> None:
    pixels = np.full((30, 40), value, np.uint8)
    assert np.array_equal(np.array(decode_png(png.encode(Picture(pixels)))), pixels)


def test_non_contiguous_views_are_encoded_correctly() -> None:
    pixels = noise(40, 60)[::2, ::-3]
    assert np.array_equal(np.array(decode_png(png.encode(Picture(pixels)))), pixels)
    colour = noise(3, 9, 11).transpose(1, 2, 0)
    assert np.array_equal(np.array(decode_png(png.encode(Picture(colour)))), colour)


def _filter_of(raster: Picture) -> int:
    """The filter type of the first row."""
    data = png.encode(raster)
    at = data.index(b"IDAT")
    (length,) = struct.unpack_from(">I", data, at - 4)
    return zlib.decompress(data[at + 4 : at + 4 + length])[0]


def test_each_kind_of_picture_gets_the_filter_that_makes_it_small() -> None:
    smooth = np.add.outer(np.arange(90) * 2, np.arange(70)).astype(np.uint8)
    spiky = np.where(noise(90, 70) > 230, noise(90, 70), 7).astype(np.uint8)
    colour = np.stack([smooth, smooth, smooth], axis=-1)
    assert _filter_of(Picture(smooth)) == 2
    assert _filter_of(Picture(spiky)) == 0
    assert _filter_of(Picture(colour)) == 4
    for pixels in (smooth, spiky, colour):
        assert np.array_equal(np.array(decode_png(png.encode(Picture(pixels)))), pixels)


@pytest.mark.parametrize("size", [*SIZES, (700, 600), (17, 23, 3), (300, 170, 3)])
def test_a_compact_picture_decodes_bit_exactly(size: tuple[int, ...]) -> None:
    pixels = noise(*size)
    assert np.array_equal(np.array(decode_png(png.encode(Picture(pixels, compact=True)))), pixels)
    smooth = np.cumsum(pixels % 3, axis=1, dtype=np.uint8)
    mixed = np.where(np.arange(size[0]).reshape(-1, *[1] * (len(size) - 1)) % 7 > 2, smooth, pixels)
    table = palette("magma").table if mixed.ndim == 2 else None
    image = decode_png(png.encode(Picture(mixed, table, compact=True)))
    assert np.array_equal(np.array(image), mixed)


def test_each_row_of_a_compact_picture_has_the_filter_with_the_smallest_residual() -> None:
    rows = np.zeros((3000, 60), np.uint8)
    assert rows.size > png._BLOCK_BYTES
    rows[-3] = noise(60)  # far from the row above, and from one pixel to the next
    rows[-2] = rows[-3] + 1
    rows[-1] = np.arange(60) * 2 + 100
    data = png.encode(Picture(rows, compact=True))
    at = data.index(b"IDAT") + 4
    (length,) = struct.unpack_from(">I", data, at - 8)
    filtered = np.frombuffer(zlib.decompress(data[at : at + length]), np.uint8).reshape(-1, 61)
    assert filtered[:, 0].tolist() == [*[0] * 2998, 2, 4]


def test_a_compact_picture_of_maps_is_smaller() -> None:
    image = Image.open(bundled("photographs") / "chelsea.jpg").convert("L")
    tiles = np.array(image)[:110, :110].reshape(2, 55, 2, 55).swapaxes(1, 2).reshape(4, 55, 55)
    pixels = grid(tiles, 2, 2, 0)
    fast, compact = (len(png.encode(Picture(pixels, compact=c))) for c in (False, True))
    assert compact < 0.95 * fast
    enlarged = (png.encode(Picture(pixels, compact=compact), 2) for compact in (False, True))
    assert len(set(enlarged)) == 1  # filtered before it is enlarged, in either case


def test_the_file_has_the_chunks_of_the_format_and_nothing_else() -> None:
    data = png.encode(Picture(noise(3, 5), palette("magma").table))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    kinds, at = [], 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kinds.append(data[at + 4 : at + 8])
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        assert checksum == zlib.crc32(data[at + 4 : at + 8 + length])
        at += 12 + length
    assert kinds == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]


def test_a_palette_costs_no_bytes_beyond_its_table() -> None:
    pixels = noise(100, 100) % 250
    grey, coloured = (
        len(png.encode(Picture(pixels, table))) for table in (None, palette("viridis").table)
    )
    assert coloured - grey == 12 + 3 * 256


def test_noise_costs_about_one_byte_per_pixel_and_black_almost_none() -> None:
    assert len(png.encode(Picture(noise(200, 200)))) < 1.02 * 200 * 200
    assert len(png.encode(Picture(np.zeros((200, 200), np.uint8)))) < 500


@pytest.mark.parametrize("size", [(0, 3), (3, 0)])
def test_a_picture_without_pixels_is_refused(size: tuple[int, int]) -> None:
    expected = re.escape(f"a picture of {size[0]}×{size[1]} px cannot be a PNG")
    with pytest.raises(ValueError, match=expected):
        png.encode(Picture(np.empty(size, np.uint8)))


@pytest.mark.parametrize("factor", [2, 3, 32])
@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (300, 200), (9, 11, 3), (300, 70, 3)])
def test_a_factor_repeats_every_pixel(shape: tuple[int, ...], factor: int) -> None:
    pixels = noise(*shape)
    repeated = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
    assert np.array_equal(np.array(decode_png(png.encode(Picture(pixels), factor))), repeated)


def test_an_enlarged_picture_costs_fewer_bytes_than_its_repeated_pixels() -> None:
    raster = Picture(noise(100, 100))
    repeated = Picture(raster.pixels.repeat(3, axis=0).repeat(3, axis=1))
    assert len(png.encode(raster, 3)) < 0.75 * len(png.encode(repeated))


def test_a_smooth_picture_of_several_pieces_decodes_bit_exactly() -> None:
    smooth = np.add.outer(np.arange(700) * 2, np.arange(600)).astype(np.uint8)
    assert smooth.size > 2 * png._BLOCK_BYTES
    assert _filter_of(Picture(smooth)) == 2
    assert np.array_equal(np.array(decode_png(png.encode(Picture(smooth)))), smooth)


def test_a_raster_with_its_png_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    raster = png.encoded(Picture(noise(8, 8), palette("magma").table, (4, 4)))
    enlarged = png.encode(Picture(raster.pixels, raster.palette), 2)
    assert raster.png == png.encode(Picture(raster.pixels, raster.palette))
    assert raster.tile == (4, 4)
    assert png.encode(raster, 2) == enlarged
    monkeypatch.setattr(deflate, "fastest", None)
    assert png.encode(raster) is raster.png
