"""The commands as a user types them, each in a directory of its own.

One of each program is the installed one. The others are called in this process, the demo in one of
its own that has imported torch.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import torch
import warm_python
from installed_commands import BIN, run, run_installed
from local_servers import LOAD_LIMIT, Server, free_port, wait_for
from pickles import CreatesFolder
from PIL import Image
from run_reader import read, steps_of, tags_of
from torch import nn

from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled


@pytest.fixture
def photograph(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    Image.open(bundled("photographs") / "chelsea.jpg").resize((160, 120)).save(path)
    return path


def test_visualize_without_arguments_draws_the_bundled_photograph(tmp_path: Path) -> None:
    done = run_installed("visualize", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "visualize" / "png" / "conv1.png").is_file()
    assert "feature_maps_16x3x7x7/conv1" in tags_of(read(tmp_path / "runs" / "visualize"))
    assert re.search(r"conv1 +16x3x7x7 +16×128×128", done.stdout)
    assert re.search(r"relu1 +ReLU +16×128×128", done.stdout)
    assert "serve runs/visualize" in done.stdout


def test_visualize_writes_every_layer_as_png_and_for_tensorboard(
    tmp_path: Path, photograph: Path
) -> None:
    done = run(
        "visualize", photograph, "--model", "resnet18", "--weights", "none", "--logdir", "runs/x",
        "--out", "maps", "--input-size", "96", "--kernels", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    maps = {path.stem for path in (tmp_path / "maps").glob("*.png")}
    layers = {
        tag.split("/")[1]
        for tag in tags_of(read(tmp_path / "runs" / "x"))
        if "feature_maps_" in tag
    }
    assert len(layers) == 20
    assert {name for name in maps if not name.startswith(("kernels", "network"))} == layers
    assert "kernels_conv1" in maps
    assert "network_input_sample_0" in maps


def test_small_maps_are_enlarged_in_files_only(tmp_path: Path, photograph: Path) -> None:
    run("visualize", photograph, "--model", "demo", "--out", "maps", "--input-size", "64",
        "--layers", "conv4", "--logdir", "runs/x", cwd=tmp_path)  # fmt: skip
    with Image.open(tmp_path / "maps" / "conv4.png") as picture:
        assert picture.size == (9 * 4 * 10 + 8, 11 * 4 * 10 + 8)  # 8 px maps, four times as large
    (event,) = read(tmp_path / "runs" / "x").Tensors("feature_maps_96x64x1x1/conv4")
    assert event.tensor_proto.string_val[0] == str(9 * 10 + 2).encode()


def test_each_of_several_images_is_a_step_and_a_folder(tmp_path: Path, photograph: Path) -> None:
    other = tmp_path / "more"
    other.mkdir()
    for number in range(4):
        Image.open(photograph).rotate(90 * number).save(other / f"turned{number}.png")
    done = run("visualize", photograph, "more", "--samples", "4", "--out", "maps", "--logdir",
               "runs/x", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "maps").iterdir()) == [
        "photo", "turned0", "turned1", "turned2",
    ]  # fmt: skip
    logged = read(tmp_path / "runs" / "x")
    assert steps_of(logged, "feature_maps_16x3x7x7/conv1") == [0, 1, 2, 3]


def test_list_shows_the_layers_and_runs_nothing(tmp_path: Path) -> None:
    done = run("visualize", "--model", "vgg16", "--weights", "none", "--list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "features.19   Conv2d             512x512x3x3     2,359,808\n" in done.stdout
    assert "output shape" not in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_model_and_checkpoint_in_the_current_folder_are_found(
    tmp_path: Path, photograph: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def net():\n    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n"
    )
    trained = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    torch.save({"state_dict": {f"module.{k}": v for k, v in trained.state_dict().items()}},
               tmp_path / "mine.pt")  # fmt: skip
    done = run("visualize", photograph, "--model", "mine:net", "--checkpoint", "mine.pt", "--out",
               "maps", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "maps" / "0.png").is_file()


def test_gray_is_a_colormap(tmp_path: Path, photograph: Path) -> None:
    done = run("visualize", photograph, "--layers", "conv4", "--colormap", "gray", "--logdir",
               "runs/x", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr


CASES = [
    (["missing.jpg"], 2, "visualize: no such file or folder: 'missing.jpg'"),
    (["broken.jpg"], 2, "broken.jpg"),
    (["empty.png"], 2, "empty.png"),
    (["photo.jpg", "--model", "resnet43"], 2, "no model 'resnet43'; closest:"),
    (["photo.jpg", "--model", "timm:convnext_tony"], 2, "closest:"),
    (["photo.jpg", "--model", "nothing.here:net"], 2, "nothing"),
    (["photo.jpg", "--layers", "comv1"], 2, "no layer matches 'comv1'"),
    (["photo.jpg", "--checkpoint", "other.pt"], 2, "other.pt"),
    (["photo.jpg", "--checkpoint", "evil.pt"], 2, "evil.pt"),
    (["photo.jpg", "--model", "resnet18"], 1, "--weights FILE"),
    (["photo.jpg", "--logdir", "photo.jpg/run"], 2, "'photo.jpg' is a file"),
    (["photo.jpg", "--out", "photo.jpg/maps"], 2, "'photo.jpg' is a file"),
    (["photo.jpg", "--logdir", "/proc/none/run"], 1, "cannot write to"),
    (["photo.jpg", "--out", "/proc/none/maps"], 1, "cannot write to"),
    (["photo.jpg", "--device", "cuda:99"], 2, "--device 'cuda:99'"),
    (["pipe.png"], 2, "'pipe.png' is a pipe or a device"),
    (["photo.jpg", "--checkpoint-key", "ema"], 2, "give --checkpoint FILE"),
    (["photo.jpg", "--model-arg", "width"], 2, "expected NAME=VALUE"),
    (["photo.jpg", "--samples", "0"], 2, "--samples"),
    (["photo.jpg", "--colormap", "jet"], 2, "jet"),
    (["--nonsense"], 2, "--nonsense"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), CASES, ids=lambda v: str(v)[:60])
def test_every_error_is_one_line_and_an_exit_code(
    tmp_path: Path,
    photograph: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    (tmp_path / "broken.jpg").write_bytes(photograph.read_bytes()[:700])
    (tmp_path / "empty.png").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.png")
    torch.save({"weight": torch.zeros(3)}, tmp_path / "other.pt")
    torch.save(CreatesFolder(tmp_path / "stolen"), tmp_path / "evil.pt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(SystemExit) as exit_of:
        run_visualize(arguments)
    lines = capsys.readouterr().err.strip().splitlines()
    said = [line for line in lines if not line.startswith("Downloading:")]
    assert exit_of.value.code == code, lines
    assert len(said) == 1, lines
    assert text in said[0]
    assert not (tmp_path / "stolen").exists()


def test_an_error_of_the_installed_command_is_one_line_on_stderr(tmp_path: Path) -> None:
    done = run_installed("fmapboard", "serve", "nowhere", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "fmapboard: no such directory: nowhere; give the log_dir of fmapboard.watch, or one above "
        "it\n"
    )


@pytest.mark.parametrize(
    "command", [["fmapboard", "visualize"], ["fmapboard", "demo"], ["visualize"]]
)
def test_help_opens_with_a_line_to_paste(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, "--help", cwd=tmp_path)
    first = done.stdout.splitlines()[0]
    assert first.split()[0] in ("fmapboard", "visualize")
    assert len(first.split()) > 1


def test_the_demo_trains_measures_draws_and_starts_a_new_run_each_time(tmp_path: Path) -> None:
    program = "from fmapboard.cli.main import run; run()"
    first = warm_python.run(program, "demo", "--steps", "6", "--every", "3", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert re.search(r"Validation accuracy on held-out regions: \d+\.\d%", first.stdout)
    assert "serve runs/demo" in first.stdout
    found = tags_of(read(tmp_path / "runs" / "demo"))
    for tag in ("feature_maps_16x3x7x7/conv1", "gradient_norm/total", "loss/training",
                "accuracy/validation", "fmapboard/conv1"):  # fmt: skip
        assert tag in found
    assert (tmp_path / "runs" / "demo" / "photograph" / "png" / "conv1.png").is_file()
    second = run("fmapboard", "demo", "--steps", "2", cwd=tmp_path)
    assert "serve runs/demo-2" in second.stdout


def test_a_demo_that_cannot_write_fails_with_one_line(tmp_path: Path) -> None:
    done = run("fmapboard", "demo", "--logdir", "/proc/none/run", cwd=tmp_path)
    assert (done.returncode, done.stderr.strip().count("\n")) == (1, 0)
    assert "cannot write to /proc/none/run" in done.stderr


def test_serve_starts_tensorboard_and_leaves_no_process(tmp_path: Path) -> None:
    run("visualize", "--logdir", "runs/x", cwd=tmp_path)
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    process = subprocess.Popen(
        [BIN / "fmapboard", "serve", "runs/x", "--port", str(port)],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )

    def images() -> Any:
        with contextlib.suppress(urllib.error.URLError):
            return Server(address).ask("plugin/images/tags")

    try:
        runs = wait_for("the run", LOAD_LIMIT, images)
        assert "feature_maps_16x3x7x7/conv1" in runs["."]
    finally:
        process.terminate()
        process.wait(timeout=30)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


def test_images_of_the_same_name_get_separate_folders(tmp_path: Path, photograph: Path) -> None:
    for folder, name in (("a", "cat.jpg"), ("b", "cat.jpg"), ("c", "cat-2.jpg")):
        (tmp_path / folder).mkdir()
        Image.open(photograph).save(tmp_path / folder / name)
    done = run("visualize", "a", "b", "c", "--out", "maps", "--layers", "conv4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folders = sorted(p.name for p in (tmp_path / "maps").iterdir())
    assert folders == ["cat", "cat-2", "cat-2-2"]
