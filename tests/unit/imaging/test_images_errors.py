"""A file that is not a readable image raises an error of one line that names it."""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from pathlib import Path

import pytest
from image_files import noise, saved
from PIL import Image

from fmapboard.errors import ImageError
from fmapboard.imaging.images import read_fitted, read_image


@pytest.mark.each_once
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


def test_a_file_of_zero_bytes_is_not_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(ImageError, match=r"a\.png' is not an image that Pillow can read; save"):
        read_image(tmp_path / "a.png")


def test_a_text_file_is_not_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("not a photograph")
    with pytest.raises(ImageError, match=r"a\.jpg' is not an image that Pillow can read"):
        read_image(tmp_path / "a.jpg")


def test_a_missing_file_is_reported_with_similar_names(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(ImageError, match=r"no such file .*/poto\.jpg'; closest: photo\.jpg"):
        read_image(tmp_path / "poto.jpg")


def test_a_file_in_a_missing_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no such file"):
        read_image(tmp_path / "nowhere" / "a.png")


def test_a_folder_is_not_an_image(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="is a folder, not an image"):
        read_image(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(ImageError, match=r"a\.png' is a pipe or a device, not a file; save the im"):
        read_image(tmp_path / "a.png")
    with pytest.raises(ImageError, match="is a pipe or a device"):
        read_fitted(tmp_path / "a.png", lambda image: image)


def test_an_eps_drawing_is_not_passed_to_another_program(tmp_path: Path) -> None:
    path = saved(Image.new("RGB", (4, 4)), tmp_path / "a.eps")
    with pytest.raises(ImageError, match=r"is a vector drawing \(EPS\); save it as PNG first"):
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


def test_an_error_about_a_name_with_a_line_break_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.png"
    path.write_bytes(b"nothing")
    with pytest.raises(ImageError) as caught:
        read_image(path)
    assert "\n" not in str(caught.value)


def test_a_decoders_message_of_several_lines_becomes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("two\nlines")

    path = saved(noise(), tmp_path / "a.png")
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(ImageError, match=r"cannot read the image .*a\.png': two lines; copy or"):
        read_image(path)


def test_reading_restores_the_warnings_filters(tmp_path: Path) -> None:
    before = list(warnings.filters)
    read_image(saved(noise(), tmp_path / "a.png"))
    assert warnings.filters == before
