"""The command ``fmapboard patches`` does what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from fmapboard.cli.main import run
from fmapboard.demo.bundled import bundled
from fmapboard.top_patches import small_text

FEW = ["--channels", "2", "--input-size", "48"]


def test_the_command_writes_pictures_and_a_run_below_runs_patches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for name in ("chelsea.jpg", "coffee.jpg"):
        (tmp_path / "photos" / name).symlink_to(bundled("photographs") / name)
    with pytest.raises(SystemExit) as done:
        run(["patches", "photos", "--model", "demo", "--layers", "conv[13]", "-k3", *FEW])
    assert done.value.code == 0
    written = capsys.readouterr().out.splitlines()
    assert written[0].startswith("demo, preprocessing: the demo network's own: ")
    assert [line.split() for line in written[2:4]] == [
        ["conv1", "16x3x7x7", "2", "of", "16", "7×7", "runs/patches/png/patches_conv1.png"],
        ["conv3", "64x32x3x3", "2", "of", "64", "42×42", "runs/patches/png/patches_conv3.png"],
    ]
    with Image.open("runs/patches/png/patches_conv1.png") as picture:
        left, below = 12 + small_text.text_width("1"), 12 + small_text.HEIGHT
        assert picture.size == (3 * (63 + 6) + left, 2 * (63 + below) + 6)


def test_a_failure_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        run(["patches", str(tmp_path), "--model", "demo"])
    assert done.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("fmapboard: no image in the folder")
    assert error.count("\n") == 1
