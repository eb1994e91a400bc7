"""Images are read upright, as their EXIF orientation says."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from image_files import noise, pixels, saved
from PIL import Image

from fmapboard.imaging.images import read_image

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
"""EXIF orientation -> the pixels that a camera held that way stores of an upright [H, W, 3]."""


@pytest.mark.each_once
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


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # as inside `decoding`
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
def test_an_image_with_damaged_exif_is_still_read(tmp_path: Path, exif: bytes) -> None:
    path = saved(Image.new("RGB", (8, 8), "white"), tmp_path / "a.jpg", exif=exif)
    assert pixels(path)[0] == (255, 255, 255)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_exif_does_not_know_is_ignored(
    tmp_path: Path, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert read_image(saved(noise(4, 6), tmp_path / "a.png", exif=exif)).size == (6, 4)
