"""``visualize`` on a folder: batches, order, broken images, interruption."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
import warm_python
from installed_commands import environment
from local_servers import wait_for
from PIL import Image
from run_reader import read, tags_of
from torch import nn

import fmapboard
from fmapboard.cli.main import run as run_fmapboard
from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled
from fmapboard.health.read_runs import read_runs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with six photographs of 96 px, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
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
    for number in (3, 4, 5):
        (folder / f"photo{number}.png").unlink()
    for size in ("1", "2"):
        assert visualize("photos", "--batch-size", size, "--logdir", f"run{size}", "--out",
                         f"maps{size}", "--kernels") == 0  # fmt: skip
    alone, together = pictures("maps1"), pictures("maps2")
    assert list(alone) == list(together)
    assert len(alone) == 3 * 7 + 6  # six maps and the input per image; six kernels once
    for name, picture in alone.items():
        assert picture.shape == together[name].shape
        assert (np.abs(picture - together[name]) > 2).mean() < 1e-3, name
    one, two = series("run1"), series("run2")
    assert list(one) == list(two)
    for tag, values in one.items():
        assert [v[0] for v in values] == [v[0] for v in two[tag]]
        assert [v[2] for v in values] == [v[2] for v in two[tag]]
    assert [step for step, *_ in two["feature_maps_16x3x7x7/conv1"]] == [0, 1, 2]
    assert [step for step, *_ in two["kernels_16x3x7x7/conv1"]] == [0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:900])


def test_a_broken_file_given_by_name_is_an_error_and_the_images_before_it_are_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut(folder / "photo4.png")
    files = [f"photos/photo{number}.png" for number in range(6)]
    assert visualize(*files, "--logdir", "run", "--out", "maps", "--batch-size", "3") == 2
    assert "photo4.png" in capsys.readouterr().err
    assert [step for step, *_ in series("run")["feature_maps_16x3x7x7/conv1"]] == [0, 1, 2, 3]
    assert sorted(path.name for path in Path("maps").iterdir()) == [
        "photo0", "photo1", "photo2", "photo3",
    ]  # fmt: skip


@pytest.fixture
def mixed(folder: Path) -> Path:
    """The folder with two subfolders, and two files among eight that are no images."""
    for number, place in ((1, "class0"), (2, "class0"), (3, "class1/deep")):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / f"photo{number}.png").rename(folder / place / f"photo{number}.png")
    (folder / "class1" / "notes.jpg").write_text("not an image")
    (folder / "also.jpg").write_text("no image either")
    return folder


UNREADABLE = "is not an image that Pillow can read; save it as PNG"
LEFT_OUT = f"""\
left out: also.jpg: 'photos/also.jpg' {UNREADABLE}
left out: class1/notes.jpg: 'photos/class1/notes.jpg' {UNREADABLE}
"""
READ = [
    "photo0.png", "photo4.png", "photo5.png", "class0/photo1.png", "class0/photo2.png",
    "class1/deep/photo3.png",
]  # fmt: skip


def test_a_folder_is_searched_with_its_subfolders_and_broken_files_are_left_out_and_listed(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert visualize("photos", "--logdir", "run", "--out", "maps", "--batch-size", "3") == 1
    printed = capsys.readouterr()
    assert printed.err == LEFT_OUT + (
        "visualize: 2 of 8 files could not be read and were left out, see above; everything else "
        "is done. Repair or remove them, and run this again\n"
    )
    assert printed.out.splitlines()[-1].startswith("6 of 8 images; no NaN; no infinity")
    folders = {Path(name).parent.as_posix() for name in pictures("maps")}
    assert folders == {name.removesuffix(".png") for name in READ}
    assert names_in_tab("run") == READ


def names_in_tab(run: str) -> list[str]:
    """The names of the steps' images, as the tab shows them."""
    record = read_runs(Path(run))[0].records[0]
    assert record.health is not None
    return [record.health.sources[step].name for step in record.health.steps]


def test_rows_of_inputs_belong_to_files_also_if_one_of_them_cannot_be_read(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mixed.parent / "scaling_by_rows.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.same = nn.Identity()\n"
        "    def forward(self, x, by):\n"
        "        return self.same(x[:, :1] * 0 + by[:, None, None, None])\n"
    )
    torch.save(torch.arange(8.0), "by.pt")
    arguments = ("--model", "scaling_by_rows:Net", "--input", "by=by.pt", "--layers", "same")
    assert visualize("photos", *arguments, "--out", "maps", "--samples", "8") == 1
    assert "1 … 1" in capsys.readouterr().out  # of photo0, the second file
    done = fmapboard.visualize(
        importlib.import_module("scaling_by_rows").Net(), "photos", layers="same",
        inputs={"by": torch.arange(8.0)}, log_dir="run",
    )  # fmt: skip
    assert [name for name, _ in done.left_out] == ["also.jpg", "class1/notes.jpg"]
    health = read_runs(Path("run"))[0].records[0].health
    assert health is not None
    assert [float(row[0]) for row in health.columns["maximum"]] == [1, 2, 3, 4, 5, 7]


def test_a_folder_in_which_nothing_can_be_read_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in folder.iterdir():
        cut(path)
    assert visualize("photos", "--out", "maps") == 2
    assert capsys.readouterr().err.startswith("visualize: none of 6 files can be read: cannot ")


def test_python_leaves_out_the_same_files_and_warns(
    mixed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    done = fmapboard.visualize(net, "photos", out="maps")
    assert [name for name, _ in done.left_out] == ["also.jpg", "class1/notes.jpg"]
    assert {path.parent.as_posix() for one in done.files for path in one["0"]} == {
        f"maps/{name.removesuffix('.png')}" for name in READ
    }
    assert done.found == "6 of 8 images; no NaN; no infinity"
    assert done.found in repr(done).splitlines()
    found = fmapboard.patches(net, "photos", k=6, channels=1)
    assert found.left_out == done.left_out
    assert {crop.name for crop in found["0"].crops[0]} == set(READ)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [f"fmapboard: {line}" for line in LEFT_OUT.splitlines() * 2]


def test_patches_searches_subfolders_and_leaves_out_the_same_files(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("patches", "photos", "--model", "demo", "--layers", "conv1", "--out", "crops")
    with pytest.raises(SystemExit) as exit_of:
        run_fmapboard(arguments)
    assert exit_of.value.code == 1
    printed = capsys.readouterr()
    assert LEFT_OUT in printed.err
    assert printed.out.splitlines()[-1] == "6 of 8 images; no NaN; no infinity"


NAN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 2, 1), nn.ReLU()
        nn.init.constant_(self.conv.weight, 1.0)
        with torch.no_grad():
            self.conv.bias.copy_(torch.tensor([0.0, -100.0]))

    def forward(self, x):
        return self.relu(self.conv(x / (x.mean((1, 2, 3), keepdim=True) > -1.0)))
"""


def test_the_last_line_is_about_all_images(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "dividing_by_zero.py").write_text(NAN)
    Image.new("RGB", (96, 96)).save(folder / "photo5.png")  # black: divided by zero
    assert visualize("photos", "--model", "dividing_by_zero:Net", "--out", "maps") == 0
    found = "6 images; no NaN; infinity in 1: photo5.png"
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"{found}; dead channels in all of them: relu 1 of 2"
    )
    with pytest.raises(SystemExit) as exit_of:
        run_fmapboard(["patches", "photos", "--model", "dividing_by_zero:Net", "--out", "crops"])
    assert (exit_of.value.code, capsys.readouterr().out.splitlines()[-1]) == (0, found)


def test_the_last_line_says_what_tensorboard_does_not_show(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(200):
        shutil.copy(folder / "photo1.png", folder / f"more{number}.png")
    assert visualize("photos", "--layers", "conv1", "--logdir", "run") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("206 images; no NaN; no infinity")
    assert last.endswith(
        "; TensorBoard shows 200 of 206 images per layer; for all of them: "
        "tensorboard --logdir run --samples_per_plugin images=206"
    )


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
    program = "from fmapboard.cli.main import run_visualize; run_visualize()"
    done = warm_python.run(program, "photos", "--layers", "conv1", "--logdir", "run")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_the_progress_bar_goes_to_stderr_and_tables_go_to_stdout(
    folder: Path,
) -> None:
    ours, theirs = os.openpty()
    program = (
        "import os; os.dup2(os.open('printed', os.O_CREAT | os.O_WRONLY), 1);"
        "from fmapboard.cli.main import run_visualize; run_visualize()"
    )
    arguments = ("photos", "--layers", "conv1", "--logdir", "run")
    with os.fdopen(theirs, "wb") as terminal:
        job = warm_python.WarmPython(
            program, *arguments, env=environment(TERM="xterm"), output=terminal
        )
    status = job.wait(120)
    out = Path("printed").read_text("utf-8")
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
    assert status == 0
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
    printed = folder.parent / "printed"
    with printed.open("wb") as output:
        job = warm_python.WarmPython(
            listening, "photos", "--logdir", "run", "--out", "maps", output=output
        )
    wait_for("the table of the first image", 60, lambda: "\nconv1" in printed.read_text("utf-8"))
    os.kill(job.pid, signal.SIGINT)
    assert job.wait(120) == 130
    assert printed.read_text("utf-8").splitlines()[-1] == "visualize: interrupted"
    steps = [step for step, *_ in series("run")["feature_maps_16x3x7x7/conv1"]]
    assert steps == list(range(len(steps)))
    assert 1 <= len(steps) < 306
    files = [path for path in Path("maps").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".png"}
    assert len(files) == 7 * len(steps)
    for path in files:
        Image.open(path).load()
