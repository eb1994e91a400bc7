"""Large pictures are converted strip by strip, and read one at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from image_files import noise, saved
from PIL import Image

from fmapboard.imaging import images
from fmapboard.imaging.images import read_fitted, read_image, to_rgb

MODES = ["RGB", "RGBA", "LA", "P", "L", "1", "CMYK", "I;16", "I", "F"]


def picture(mode: str) -> Image.Image:
    if mode in ("I;16", "I", "F"):
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        values = np.random.default_rng(0).integers(0, 60_000, (50, 31)).astype(kind)
        return Image.fromarray(values)
    return noise().resize((31, 50)).convert(mode)


@pytest.mark.parametrize("mode", MODES)
def test_converting_in_strips_gives_the_same_picture_as_converting_at_once(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = to_rgb(picture(mode))
    monkeypatch.setattr(images, "_STRIP", 31 * 7)
    assert np.array_equal(np.asarray(to_rgb(picture(mode))), np.asarray(whole))


def test_a_transparent_colour_of_a_palette_holds_in_every_strip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_STRIP", 4)
    colours = Image.new("P", (2, 6), 1)
    colours.putpalette([255, 0, 0, 0, 255, 0])
    colours.save(tmp_path / "a.png", transparency=1)
    assert np.asarray(read_image(tmp_path / "a.png")).min() == 255  # all white


@pytest.mark.parametrize(("limit", "alone"), [(10, True), (10**9, False)])
def test_no_other_large_image_is_read_while_one_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, alone: bool
) -> None:
    monkeypatch.setattr(images, "_LARGE", limit)
    path = saved(noise(), tmp_path / "a.png")
    assert read_fitted(path, lambda _: images._READING_LARGE.locked()) is alone
    assert not images._READING_LARGE.locked()


MEASURED = """
import re, sys
from pathlib import Path
from fmapboard.imaging.images import read_image
def peak():  # of this program alone: ru_maxrss would start with that of its parent
    return int(re.search(r"VmHWM: *\\t? *(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
read_image(Path(sys.argv[1]))
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_picture_of_20_million_pixels_takes_at_most_11_bytes_per_pixel(tmp_path: Path) -> None:
    Image.new("RGBA", (5000, 4000), (9, 8, 7, 6)).save(tmp_path / "a.png", compress_level=1)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "a.png")],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout) * 1024 < 11 * 5000 * 4000
