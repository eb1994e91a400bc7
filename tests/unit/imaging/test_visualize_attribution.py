"""``visualize --attribution``: where activations raise the score of a class, over the image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from run_reader import read, tags_of

from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled

CHELSEA = str(bundled("photographs") / "chelsea.jpg")


def visualize(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_of:
        run_visualize(arguments)
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code


def test_the_pictures_are_in_the_run_and_in_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, folder = tmp_path / "run", tmp_path / "maps"
    assert visualize(CHELSEA, "--attribution", "--logdir", str(run), "--out", str(folder)) == 0
    tags = [tag for tag in tags_of(read(run)) if tag.startswith("attribution/")]
    files = sorted(folder.glob("attribution_*.png"))
    assert len(tags) == len(files) > 1
    pictures = [np.asarray(Image.open(file).convert("RGB")) for file in files]
    assert all(len(np.unique(picture.reshape(-1, 3), axis=0)) > 20 for picture in pictures)
    assert "Traceback" not in capsys.readouterr().err


def test_another_class_gives_other_pictures_and_is_named(tmp_path: Path) -> None:
    found = []
    for number in ("0", "3"):
        run = tmp_path / number
        options = ("--attribution", "--class", number, "--logdir", str(run))
        assert visualize(CHELSEA, *options) == 0
        events = read(run)
        tag = next(tag for tag in tags_of(events) if tag.startswith("attribution/"))
        assert f"raises the score of class {number} (" in str(
            events.SummaryMetadata(tag).summary_description
        )
        found.append([bytes(part) for part in events.Tensors(tag)[0].tensor_proto.string_val])
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--class", "3"), "--class needs --attribution"),
        (("--attribution", "--class", "99"), "class 99 does not exist: the model has 0…"),
    ],
)
def test_an_invalid_class_is_bad_usage(
    options: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert visualize(CHELSEA, "--out", str(tmp_path / "maps"), *options) == 2
    assert message in capsys.readouterr().err
