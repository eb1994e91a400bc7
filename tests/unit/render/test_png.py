"""PNG files decode to exactly the pixels that were encoded, and are small."""

from __future__ import annotations

import re
import struct
import zlib

import numpy as np
import pytest
from decoded_pictures import decode_png

from fmapboard.records import Picture
from fmapboard.render import png
from fmapboard.render import png as deflate
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
