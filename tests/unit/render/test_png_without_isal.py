"""Without isal, zlib compresses; the decoded pixels are the same."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
import warm_python
from decoded_pictures import decode_png
from installed_commands import run
from isal import isal_zlib

from fmapboard.records import Picture
from fmapboard.render import png
from fmapboard.render import png as deflate
from fmapboard.render.palettes import palette


def pictures() -> dict[str, Picture]:
    noise = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(500), np.arange(300)).astype(np.uint8)
    return {
        "noise": Picture(noise.integers(0, 256, (70, 90), np.uint8)),
        "smooth": Picture(smooth),
        "rgb": Picture(noise.integers(0, 256, (70, 90, 3), np.uint8)),
        "palette": Picture(smooth % 250, palette("magma").table),
        "one pixel": Picture(np.zeros((1, 1), np.uint8)),
    }


def decoded(data: bytes) -> np.ndarray:
    return np.asarray(decode_png(data))


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("name", pictures())
def test_both_libraries_make_pictures_of_the_same_pixels(
    name: str, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = pictures()[name]
    made = []
    for library in (isal_zlib, zlib):
        monkeypatch.setattr(deflate, "fastest", library)
        made.append(decoded(png.encode(picture, factor)))
    expected = picture.pixels.repeat(factor, 0).repeat(factor, 1)
    assert np.array_equal(made[0], expected)
    assert np.array_equal(made[1], expected)


def test_isal_is_used_where_it_is_installed() -> None:
    assert deflate.fastest is isal_zlib


WITHOUT = """
import sys, warnings
warnings.simplefilter("error", UserWarning)
sys.modules["isal"] = sys.modules["isal.isal_zlib"] = sys.modules["google_crc32c"] = None
from fmapboard.cli.main import run_visualize
run_visualize(sys.argv[1:])
"""


@pytest.mark.slow
def test_without_compiled_libraries_the_command_draws_the_same_pixels(tmp_path: Path) -> None:
    def arguments(name: str) -> list[str]:
        return ["--layers", "conv1", "--out", f"{name}/maps", "--logdir", f"{name}/run"]

    assert run("visualize", *arguments("with"), cwd=tmp_path).returncode == 0
    done = warm_python.run(WITHOUT, *arguments("without"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    one, other = ((tmp_path / name / "maps" / "conv1.png") for name in ("with", "without"))
    assert one.read_bytes() != other.read_bytes()
    assert np.array_equal(decoded(one.read_bytes()), decoded(other.read_bytes()))
    assert steps(tmp_path / "without" / "run") == steps(tmp_path / "with" / "run") != []


def steps(place: Path) -> list[int]:
    """The steps in a run, read with TensorBoard's loader, which verifies the checksums."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    (path,) = place.glob("events*")
    return [event.step for event in EventFileLoader(str(path)).Load()]
