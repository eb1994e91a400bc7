"""The user's own mean, std, resize and crop replace those that the weights expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from loaded_model import input_image
from run_reader import read, steps_of

from fmapboard.cli.main import run_visualize, visualize
from fmapboard.errors import ConfigurationError
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.models.request import ModelRequest

KNOWN = Preprocessing((224, 224), 256, (0.4, 0.5, 0.6), (0.2, 0.2, 0.2), source="the weights")


def options(*words: str) -> dict[str, Any]:
    """The values of the options on a command line of ``visualize``."""
    given = visualize.make_context("visualize", list(words)).params
    return {name: given[name] for name in ("mean", "std", "resize", "crop")}


@pytest.mark.parametrize(
    ("words", "resize", "size"),
    [
        ("", 256, (224, 224)),
        ("--resize 96", 96, (96, 96)),
        ("--resize 512", 512, (224, 224)),
        ("--resize 40x60", (40, 60), None),
        ("--resize none", None, None),
        ("--crop 96", 256, (96, 96)),
        ("--crop 300", 300, (300, 300)),
        ("--crop 40x300", 300, (40, 300)),
        ("--crop none", 256, None),
        ("--resize 100 --crop 96x64", 100, (96, 64)),
        ("--resize none --crop 64", None, (64, 64)),
        ("--resize 40x60 --crop 40", (40, 60), (40, 40)),
    ],
)
def test_a_size_that_is_not_given_fits_the_other(
    words: str, resize: Any, size: tuple[int, int] | None
) -> None:
    recipe = KNOWN.changed(**options(*words.split()))
    assert (recipe.resize, recipe.size) == (resize, size)
    assert (recipe.mean, recipe.std) == (KNOWN.mean, KNOWN.std)
    made = recipe(input_image(90, 70)).shape
    assert made[1:] == (size or resize or (70, 90) if words != "--crop none" else (256, 329))


def test_what_is_not_given_stays_and_the_output_says_so() -> None:
    assert KNOWN.changed() is KNOWN
    own = KNOWN.changed(**options("--mean", "0.5", "--crop", "64"))
    assert (own.mean, own.std) == ((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    assert str(own) == (
        "--mean, --crop as given, otherwise the weights: shorter side 256 px, crop 64×64, "
        "mean 0.5 0.5 0.5, std 0.2 0.2 0.2"
    )
    all_given = ["--mean", "0, -0.1,.2", "--std", "1", "--resize", "8x9", "--crop", "none"]
    assert str(KNOWN.changed(**options(*all_given))) == (
        "--mean, --std, --resize, --crop as given: resized to 8×9 px, mean 0 -0.1 0.2, std 1 1 1"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--mean 123.675,116.28,103.53", r"pixels from 0 to 1: 0\.485,0\.456,0\.406\?"),
        ("--std 0.2,0", "expected numbers above 0"),
        ("--mean nan", "expected finite numbers"),
        ("--std half", r"with commas and no spaces: 0\.5 or 0\.485,0\.456,0\.406"),
        ("--mean 0.485,", "with commas and no spaces"),
        ("--resize 0", "expected px, such as 224 or 480x640, or none"),
        ("--crop -4", "expected px"),
        ("--crop 2x3x4", "expected px"),
        ("--resize 1e9", "expected px"),
    ],
)
def test_invalid_values_are_refused_with_an_example(words: str, text: str) -> None:
    with pytest.raises(click.UsageError, match=text):
        options(*words.split())


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="--std has 2 numbers: expected 1 or 3"):
        KNOWN.changed(std=(0.1, 0.2))
    larger = KNOWN.changed(resize=97, crop=98)
    with pytest.raises(
        ConfigurationError, match=r"smaller than the crop, 98×98; give a larger --re"
    ):
        larger(input_image(90, 90))
    with pytest.raises(ConfigurationError, match="excludes --resize and --crop: give it alone"):
        load_model(ModelRequest("resnet18", weights="none", input_size=64, crop=32))
    small = KNOWN.changed(resize="none", crop=80)
    with pytest.raises(ConfigurationError, match=r"image of 70×90 px .* smaller than the crop, 80"):
        small(input_image(90, 70))


def test_a_processor_that_scales_to_other_numbers_makes_the_same_input() -> None:
    config = {"do_resize": False, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    other = {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [0.5] * 3}
    raw = {"do_rescale": False, "image_mean": [127.5] * 3, "image_std": [63.75] * 3}
    recipe, *same = (Preprocessing.from_huggingface({**config, **c}) for c in ({}, other, raw))
    assert recipe.resize is None
    assert [(one.mean, one.std) for one in same] == [(recipe.mean, recipe.std)] * 2


def test_the_command_prints_what_was_used_and_logs_from_the_given_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    input_image(90, 70).save(tmp_path / "a.png")
    input_image(90, 70).save(tmp_path / "b.png")
    words = [str(tmp_path), "--layers", "conv1", "--std", "0.3", "--resize", "32", "--step", "322"]
    with pytest.raises(SystemExit) as exit_of:
        run_visualize([*words, "--logdir", str(tmp_path / "run")])
    out = capsys.readouterr().out
    assert exit_of.value.code == 0
    assert out.startswith(
        "demo, preprocessing: --std, --resize as given, otherwise the demo network's own: "
        "shorter side 32 px, crop 32×32, mean "
    )
    assert steps_of(read(tmp_path / "run"), "feature_maps_16x3x7x7/conv1") == [322, 323]


def test_checkpoints_of_a_series_have_steps_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ckpt_1.pt").touch()
    with pytest.raises(SystemExit) as exit_of:
        run_visualize(["--checkpoint", str(tmp_path / "ckpt_*.pt"), "--step", "3"])
    assert exit_of.value.code == 2
    assert "--step takes one checkpoint, not several" in capsys.readouterr().err
