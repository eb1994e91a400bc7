"""``visualize`` on a folder: batches, order, broken images, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from installed_commands import BIN, environment
from PIL import Image
from run_reader import read, tags_of

from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with six photographs of 96 px, in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "photos"
    path.mkdir()
    for number, source in enumerate(sorted(bundled("photographs").glob("*.jpg"))[:6]):
        Image.open(source).convert("RGB").resize((96, 96)).save(path / f"photo{number}.png")
    return path


def visualize(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_of:
        run_visualize(arguments)
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code


def series(run: str) -> dict[str, list[tuple[int, list[bytes], str]]]:
    """Tag -> (step, strings, description) of every value of the run."""
    accumulator = read(Path(run))
    return {
        tag: [
            (
                event.step,
                list(event.tensor_proto.string_val),
                accumulator.SummaryMetadata(tag).summary_description,
            )
            for event in accumulator.Tensors(tag)
        ]
        for tag in tags_of(accumulator)
    }


def pictures(folder: str) -> dict[str, np.ndarray]:
    return {
        path.relative_to(folder).as_posix(): np.asarray(Image.open(path).convert("RGB"), int)
        for path in sorted(Path(folder).rglob("*.png"))
    }


def test_the_batch_size_changes_nothing_that_is_written(folder: Path) -> None:
    for size in ("1", "4"):
        assert visualize("photos", "--batch-size", size, "--logdir", f"run{size}", "--out",
                         f"maps{size}", "--kernels") == 0  # fmt: skip
    alone, together = pictures("maps1"), pictures("maps4")
    assert list(alone) == list(together)
    assert len(alone) == 6 * 7 + 6  # six maps and the input per image; six kernels once
    for name, picture in alone.items():
        assert picture.shape == together[name].shape
        assert (np.abs(picture - together[name]) > 2).mean() < 1e-3, name
    one, four = series("run1"), series("run4")
    assert list(one) == list(four)
    for tag, values in one.items():
        assert [v[0] for v in values] == [v[0] for v in four[tag]]
        assert [v[2] for v in values] == [v[2] for v in four[tag]]
    assert [step for step, *_ in four["feature_maps_16x3x7x7/conv1"]] == [0, 1, 2, 3, 4, 5]
    assert [step for step, *_ in four["kernels_16x3x7x7/conv1"]] == [0]


def test_a_broken_image_is_an_error_and_the_images_before_it_are_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder / "photo4.png"
    broken.write_bytes(broken.read_bytes()[:900])
    assert visualize("photos", "--logdir", "run", "--out", "maps", "--batch-size", "3") == 2
    assert "photo4.png" in capsys.readouterr().err
    assert [step for step, *_ in series("run")["feature_maps_16x3x7x7/conv1"]] == [0, 1, 2, 3]
    assert sorted(path.name for path in Path("maps").iterdir()) == [
        "photo0", "photo1", "photo2", "photo3",
    ]  # fmt: skip


def test_a_network_that_mixes_images_gets_them_one_by_one_and_a_message_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "mixing.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(\n"
        "        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False),\n"
        "        nn.Conv2d(4, 4, 3))\n"
    )
    assert visualize("photos", "--model", "mixing:build", "--logdir", "run") == 0
    said = capsys.readouterr().err.strip().splitlines()
    reason = "2 differs when an image is run in a batch"
    assert said == [f"Running one image per forward pass: {reason}"]
    assert [step for step, *_ in series("run")["feature_maps_4x4x3x3/2"]] == [0, 1, 2, 3, 4, 5]


def test_no_progress_bar_is_drawn_if_stderr_is_not_a_terminal(folder: Path) -> None:
    done = subprocess.run(
        [BIN / "visualize", "photos", "--logdir", "run"],
        capture_output=True, text=True, timeout=120, check=True,
        env=environment(),
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_the_progress_bar_goes_to_stderr_and_tables_go_to_stdout(
    folder: Path,
) -> None:
    ours, theirs = os.openpty()
    job = subprocess.Popen(
        [BIN / "visualize", "photos", "--logdir", "run"],
        stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=environment(TERM="xterm"),
    )  # fmt: skip
    os.close(theirs)
    out, _ = job.communicate(timeout=120)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert job.returncode == 0
    assert b"visualizing" in shown
    assert b"6/6" in shown
    assert "conv1" in out
    assert b"conv1" not in shown


def test_an_interruption_leaves_only_complete_images(folder: Path) -> None:
    sources = sorted(folder.glob("*.png"))
    for number in range(300):
        (folder / f"more{number}.png").write_bytes(sources[number % 6].read_bytes())
    # If CI runs as a background job of a shell, programs start with SIGINT ignored.
    listening = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from fmapboard.cli.main import run_visualize; run_visualize()"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", listening, "photos", "--logdir", "run", "--out", "maps"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip
    assert job.stdout is not None
    for line in job.stdout:
        if line.startswith("conv1"):  # the table of the first image: work has begun
            break
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=120)
    assert (job.returncode, err.strip()) == (130, "visualize: interrupted")
    steps = [step for step, *_ in series("run")["feature_maps_16x3x7x7/conv1"]]
    assert steps == list(range(len(steps)))
    assert 1 <= len(steps) < 306
    files = [path for path in Path("maps").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".png"}
    assert len(files) == 7 * len(steps)
    for path in files:
        Image.open(path).load()
