"""Images of every Pillow mode are read as 8-bit RGB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from image_files import pixels, saved
from PIL import Image

from fmapboard.imaging.images import PEAK, read_image, to_rgb


def test_a_colour_picture_is_read_as_it_is(tmp_path: Path) -> None:
    path = saved(
        Image.frombytes("RGB", (2, 1), bytes([1, 2, 3, 250, 251, 252])), tmp_path / "a.png"
    )
    assert pixels(path) == [(1, 2, 3), (250, 251, 252)]


def test_a_grey_picture_has_three_equal_channels(tmp_path: Path) -> None:
    path = saved(Image.frombytes("L", (3, 1), bytes([0, 100, 255])), tmp_path / "a.png")
    assert pixels(path) == [(0, 0, 0), (100, 100, 100), (255, 255, 255)]


def test_a_one_bit_picture_is_black_and_white(tmp_path: Path) -> None:
    path = saved(Image.frombytes("1", (2, 1), bytes([0b01000000])), tmp_path / "a.png")
    assert pixels(path) == [(0, 0, 0), (255, 255, 255)]


def test_transparency_is_blended_onto_white(tmp_path: Path) -> None:
    rgba = Image.frombytes("RGBA", (3, 1), bytes([255, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 127]))
    path = saved(rgba, tmp_path / "a.png")
    assert pixels(path) == [(255, 0, 0), (255, 255, 255), (128, 128, 128)]


def test_transparent_grey_is_blended_onto_white(tmp_path: Path) -> None:
    path = saved(Image.frombytes("LA", (2, 1), bytes([50, 255, 50, 0])), tmp_path / "a.png")
    assert pixels(path) == [(50, 50, 50), (255, 255, 255)]


def palette_picture() -> Image.Image:
    image = Image.frombytes("P", (2, 1), bytes([0, 1]))
    image.putpalette([10, 20, 30, 40, 50, 60])
    return image


def test_a_palette_picture_has_its_colours(tmp_path: Path) -> None:
    path = saved(palette_picture(), tmp_path / "a.png")
    assert pixels(path) == [(10, 20, 30), (40, 50, 60)]


def test_a_transparent_palette_entry_is_white(tmp_path: Path) -> None:
    path = saved(palette_picture(), tmp_path / "a.png", transparency=1)
    assert pixels(path) == [(10, 20, 30), (255, 255, 255)]


def test_a_colour_declared_transparent_is_white(tmp_path: Path) -> None:
    rgb = Image.frombytes("RGB", (2, 1), bytes([1, 2, 3, 4, 5, 6]))
    path = saved(rgb, tmp_path / "a.png", transparency=(1, 2, 3))
    assert pixels(path) == [(255, 255, 255), (4, 5, 6)]


SIXTEEN = np.array([[0, 257, 25700, 65535]], np.uint16)
SIXTEEN_AS_RGB = [(0, 0, 0), (1, 1, 1), (100, 100, 100), (255, 255, 255)]


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_a_sixteen_bit_picture_keeps_its_greys(tmp_path: Path, suffix: str) -> None:
    path = saved(Image.fromarray(SIXTEEN), tmp_path / f"a{suffix}")
    assert pixels(path) == SIXTEEN_AS_RGB


def test_a_big_endian_sixteen_bit_picture_keeps_its_greys(tmp_path: Path) -> None:
    image = Image.frombytes("I;16B", (4, 1), SIXTEEN.astype(">u2").tobytes())
    assert pixels(saved(image, tmp_path / "a.tif")) == SIXTEEN_AS_RGB


def test_a_sixteen_bit_pgm_keeps_its_greys(tmp_path: Path) -> None:
    path = tmp_path / "a.pgm"
    path.write_bytes(b"P5 4 1 65535\n" + SIXTEEN.astype(">u2").tobytes())
    assert pixels(path) == SIXTEEN_AS_RGB


def test_colours_of_12_bits_are_scaled_to_what_the_file_calls_white(tmp_path: Path) -> None:
    path = tmp_path / "a.ppm"
    path.write_bytes(b"P6 1 1 4095\n" + np.array([4095, 16, 0], ">u2").tobytes())
    assert pixels(path) == [(255, 1, 0)]


@pytest.mark.parametrize(("factor", "peak"), [(16, 4080 / 65535), (257, 1)])
def test_the_largest_value_of_a_16_bit_grey_is_kept_and_of_others_there_is_none(
    tmp_path: Path, factor: int, peak: float
) -> None:
    grey = Image.fromarray(np.array([[0, 255 * factor]], np.uint16))
    assert read_image(saved(grey, tmp_path / "a.png")).info[PEAK] == peak
    assert PEAK not in read_image(saved(Image.new("L", (2, 2), 3), tmp_path / "b.png")).info


def test_a_png_that_pillow_calls_32_bit_is_scaled_as_a_16_bit_one() -> None:
    image = Image.fromarray(SIXTEEN.astype(np.int32)[:, :3])
    image.format = "PNG"  # as older versions of Pillow open a 16-bit PNG
    assert image.mode == "I"
    assert np.asarray(to_rgb(image))[0, :, 0].tolist() == [0, 1, 100]


def test_32_bit_integers_are_scaled_between_their_extremes(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[-1000, 0, 1000]], np.int32))
    path = saved(image, tmp_path / "a.tif")
    assert pixels(path) == [(0, 0, 0), (128, 128, 128), (255, 255, 255)]


def test_floats_are_scaled_between_their_finite_extremes(tmp_path: Path) -> None:
    values = np.array([[-0.5, 0.5, np.nan, np.inf, -np.inf]], np.float32)
    image = Image.fromarray(values)
    assert np.asarray(to_rgb(image))[0, :, 0].tolist() == [0, 255, 0, 255, 0]
    path = saved(image, tmp_path / "a.tif")
    assert [p[0] for p in pixels(path)] == [0, 255, 0, 255, 0]


@pytest.mark.parametrize("value", [7.0, np.nan, np.inf])
def test_equal_floats_are_one_colour(value: float) -> None:
    image = to_rgb(Image.fromarray(np.full((1, 2), value, np.float32)))
    grey = 255 if value == np.inf else 0
    assert np.asarray(image)[0].tolist() == [[grey] * 3, [grey] * 3]


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_cmyk_inks_become_colours(tmp_path: Path, suffix: str) -> None:
    inks = {"cyan": (255, 0, 0, 0), "magenta": (0, 255, 0, 0), "none": (0, 0, 0, 0)}
    colours = {"cyan": (0, 255, 255), "magenta": (255, 0, 255), "none": (255, 255, 255)}
    for name, ink in inks.items():
        path = saved(Image.new("CMYK", (8, 8), ink), tmp_path / f"{name}{suffix}")
        difference = np.array(pixels(path)[0]) - np.array(colours[name])
        assert np.abs(difference).max() <= 2


def test_an_adobe_cmyk_jpeg_is_stored_inverted_and_read_correctly(tmp_path: Path) -> None:
    path = saved(Image.new("CMYK", (8, 8), (0, 0, 0, 255)), tmp_path / "a.jpg")
    assert b"Adobe" in path.read_bytes()
    assert pixels(path)[0] == (0, 0, 0)


@pytest.mark.parametrize("mode", ["YCbCr", "LAB"])
def test_other_colour_spaces_are_converted(mode: str) -> None:
    grey = {"YCbCr": (200, 128, 128), "LAB": (205, 128, 128)}[mode]
    # No file in between: Pillow before 13 cannot read back a YCbCr TIFF of its own.
    red, green, blue = to_rgb(Image.new(mode, (1, 1), grey)).getpixel((0, 0))
    assert max(red, green, blue) - min(red, green, blue) <= 2
    assert 195 <= red <= 205


def test_hsv_is_converted() -> None:
    assert to_rgb(Image.new("HSV", (1, 1), (0, 255, 255))).getpixel((0, 0)) == (255, 0, 0)


def test_the_first_frame_of_an_animation_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for name in ("a.gif", "a.tif", "a.png"):
        path = saved(frames[0], tmp_path / name, save_all=True, append_images=frames[1:])
        assert pixels(path)[0] == (255, 0, 0)
