"""Photographs of every mode and state become upright 8-bit RGB, or an error that says why not."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fmapboard.cli.images import find_images, read_image, to_rgb
from fmapboard.errors import ImageError


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)
    return path


def noise(height: int = 40, width: int = 60) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(values)


def pixels(path: Path) -> list[tuple[int, int, int]]:
    image = read_image(path)
    assert image.mode == "RGB"
    return [tuple(p) for row in np.asarray(image).tolist() for p in row]


# -- modes ---------------------------------------------------------------------------------------


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


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    rgba = Image.frombytes("RGBA", (3, 1), bytes([255, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 127]))
    path = saved(rgba, tmp_path / "a.png")
    assert pixels(path) == [(255, 0, 0), (255, 255, 255), (128, 128, 128)]


def test_transparent_grey_is_laid_on_white(tmp_path: Path) -> None:
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


def test_a_colour_that_stands_for_transparent_is_white(tmp_path: Path) -> None:
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


def test_a_cmyk_jpeg_of_adobes_is_stored_inverted_and_read_right(tmp_path: Path) -> None:
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


def test_of_an_animation_the_first_frame_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for name in ("a.gif", "a.tif", "a.png"):
        path = saved(frames[0], tmp_path / name, save_all=True, append_images=frames[1:])
        assert pixels(path)[0] == (255, 0, 0)


# -- orientation ---------------------------------------------------------------------------------

STORED = {
    1: lambda upright: upright,
    2: np.fliplr,
    3: lambda upright: np.rot90(upright, 2),
    4: np.flipud,
    5: lambda upright: upright.transpose(1, 0, 2),
    6: lambda upright: np.rot90(upright, 1),
    7: lambda upright: np.rot90(upright, 2).transpose(1, 0, 2),
    8: lambda upright: np.rot90(upright, -1),
}
"""EXIF orientation -> how a camera that is held so stores the upright picture [H, W, 3]."""


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp"])
def test_a_turned_picture_is_read_upright(tmp_path: Path, orientation: int, suffix: str) -> None:
    upright = np.asarray(noise(5, 7))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    options = {"lossless": True} if suffix == ".webp" else {}
    path = saved(stored, tmp_path / f"a{suffix}", exif=exif, **options)
    assert np.array_equal(np.asarray(read_image(path)), upright)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_jpeg_is_read_upright(tmp_path: Path, orientation: int) -> None:
    rows, columns = np.mgrid[0:48, 0:64]
    upright = np.stack([rows * 5, columns * 4, rows + columns], axis=2).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    path = saved(stored, tmp_path / "a.jpg", exif=exif, quality=95, subsampling=0)
    difference = np.asarray(read_image(path)).astype(int) - upright
    assert difference.shape == (48, 64, 3)
    assert np.abs(difference).max() <= 8


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0garbage",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0",
        # A well-formed block whose orientation is the text "abc".
        b"Exif\0\0II*\0" + struct.pack("<IHHHI4sI", 8, 1, 0x0112, 2, 4, b"abc\0", 0),
    ],
)
def test_damaged_exif_does_not_cost_the_picture(tmp_path: Path, exif: bytes) -> None:
    path = saved(Image.new("RGB", (8, 8), "white"), tmp_path / "a.jpg", exif=exif)
    assert pixels(path)[0] == (255, 255, 255)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_exif_does_not_know_is_ignored(
    tmp_path: Path, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert read_image(saved(noise(4, 6), tmp_path / "a.png", exif=exif)).size == (6, 4)


# -- files that are no pictures ------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif", ".webp", ".ppm"])
@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.9])
def test_a_truncated_file_is_an_error_that_names_it(
    tmp_path: Path, suffix: str, kept: float
) -> None:
    path = saved(noise(), tmp_path / f"a{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[: max(1, int(len(whole) * kept))])
    with pytest.raises(ImageError, match=f"a{suffix}") as caught:
        read_image(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_no_bytes_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(ImageError, match=r"a\.png' is empty: 0 bytes"):
        read_image(tmp_path / "a.png")


def test_a_text_file_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("not a photograph")
    with pytest.raises(ImageError, match=r"a\.jpg' is not an image that Pillow can read"):
        read_image(tmp_path / "a.jpg")


def test_a_missing_file_is_said_with_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(ImageError, match=r"no such file .*/poto\.jpg'; closest: photo\.jpg"):
        read_image(tmp_path / "poto.jpg")


def test_a_file_in_a_missing_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no such file"):
        read_image(tmp_path / "nowhere" / "a.png")


def test_a_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="is a folder, not an image"):
        read_image(tmp_path)


def test_a_drawing_is_not_run_through_another_program(tmp_path: Path) -> None:
    path = saved(Image.new("RGB", (4, 4)), tmp_path / "a.eps")
    with pytest.raises(ImageError, match=r"is a drawing \(EPS\); save it as PNG first"):
        read_image(path)


def png_of_size(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0" * (min(width, 1) + 1)))
    return b"\x89PNG\r\n\x1a\n" + head + data + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 20_000])
def test_a_picture_of_a_hundred_million_pixels_is_refused(tmp_path: Path, side: int) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of_size(side, side))
    with pytest.raises(ImageError, match=r"bomb\.png' has more than 89 million pixels"):
        read_image(path)


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 5), (5, 0)])
def test_a_picture_without_pixels_is_refused(tmp_path: Path, width: int, height: int) -> None:
    path = tmp_path / "flat.png"
    path.write_bytes(png_of_size(width, height))
    with pytest.raises(ImageError, match=r"flat\.png"):
        read_image(path)


def test_a_name_with_a_line_break_still_makes_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.png"
    path.write_bytes(b"nothing")
    with pytest.raises(ImageError) as caught:
        read_image(path)
    assert "\n" not in str(caught.value)


def test_what_a_decoder_says_in_lines_becomes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("two\nlines")

    path = saved(noise(), tmp_path / "a.png")
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(ImageError, match=r"cannot read the image .*a\.png': two lines$"):
        read_image(path)


def test_reading_restores_the_warnings_filters(tmp_path: Path) -> None:
    before = list(warnings.filters)
    read_image(saved(noise(), tmp_path / "a.png"))
    assert warnings.filters == before


# -- finding -------------------------------------------------------------------------------------


def test_files_come_as_given_and_folders_in_natural_order(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    for name in ("b10.jpg", "B9.PNG", "a1.tif", "notes.txt", ".hidden.png", "inner/c.png"):
        (folder / name).touch()
    (tmp_path / "odd.name").touch()
    found = find_images([tmp_path / "odd.name", folder, folder / "B9.PNG"])
    assert [p.name for p in found] == ["odd.name", "a1.tif", "B9.PNG", "b10.jpg", "B9.PNG"]


def test_a_folder_without_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ImageError, match=r"holds no image; looked for \.avif, \.bmp"):
        find_images([tmp_path])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"no such file or folder: .*nothing'"):
        find_images([tmp_path / "nothing"])
