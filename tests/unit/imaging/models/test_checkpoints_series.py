"""``visualize --checkpoint 'ckpt_*.pt'``: one step per checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from run_reader import read, steps_of, tags_of
from tensorboard.util import tensor_util
from torch import nn

from fmapboard.cli.main import run_visualize
from fmapboard.errors import CheckpointError
from fmapboard.imaging.models.checkpoints import series_of, step_in

NETS = """
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("series_nets.py").write_text(NETS)
    for name in ("dog.png", "cat.png"):
        noise = np.random.default_rng(len(name)).integers(0, 256, (40, 40, 3), np.uint8)
        Image.fromarray(noise).save(name)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    for step in (20, 100, 3):
        nn.init.constant_(net[2].bias, step)
        torch.save(net.state_dict(), f"ckpt_{step}.pt")


def visualize(*options: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run_visualize(["--model", "series_nets:build", "--input-size", "16", *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def steps(run: Path, ending: str) -> list[int]:
    found = read(run)
    (tag,) = [t for t in tags_of(found) if t.startswith("feature_maps") and t.endswith(ending)]
    return steps_of(found, tag)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("ckpt_0120.pt", 120), ("model-7.safetensors", 7), ("resnet18_epoch_3.pth", 3),
        ("epoch=3-step=1200.ckpt", 1200), ("iter_400_of_9.pt", 400), ("last.pt", None),
        ("checkpoint-500", 500),
    ],
)  # fmt: skip
def test_the_step_is_read_from_the_file_name(name: str, step: int | None) -> None:
    assert step_in(name) == step


def test_checkpoints_come_in_the_order_of_their_steps() -> None:
    for name in ("a_step2.pt", "b_step1.pt"):
        Path(name).touch()
    assert [one.path.name for one in series_of(Path("*_step*.pt"))] == ["b_step1.pt", "a_step2.pt"]
    found = series_of(Path("ckpt_*.pt"))
    assert [(one.step, one.path.name) for one in found] == [
        (3, "ckpt_3.pt"),
        (20, "ckpt_20.pt"),
        (100, "ckpt_100.pt"),
    ]


@pytest.mark.parametrize("names", [("best.pt", "a2.pt", "a10.pt"), ("b1.pt", "a2.pt", "c01.pt")])
def test_without_a_number_each_the_steps_are_the_indices(names: tuple[str, ...]) -> None:
    for name in names:
        Path("series").mkdir(exist_ok=True)
        Path("series", name).touch()
    found = series_of(Path("series/*.pt"))
    assert [one.step for one in found] == [0, 1, 2]
    assert found[0].path.name.startswith("a2")


def test_a_file_is_no_pattern_and_a_pattern_needs_a_match() -> None:
    Path("odd[1].pt").touch()
    assert series_of(None) == series_of(Path("ckpt_3.pt")) == series_of(Path("odd[1].pt")) == []
    for pattern, advice in {
        "ckpt_*.ptt": "; closest: ckpt_",
        "absent/ckpt_*.pt": "; there is no folder 'absent'",
        "a*/ckpt_*.pt": r"; write it as the files are named, such as --checkpoint 'ckpt_\*\.pt'",
    }.items():
        with pytest.raises(CheckpointError, match=f"no checkpoint matches '.*'{advice}"):
            series_of(Path(pattern))


def test_one_image_has_a_step_per_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("dog.png", "--checkpoint", "ckpt_*.pt", "--logdir", "run", "--out", "maps")
    assert visualize(*options, "--kernels") == 0
    assert steps(Path("run"), "/2") == [3, 20, 100]
    assert sorted(path.name for path in Path("maps").iterdir()) == ["step100", "step20", "step3"]
    assert Path("maps/step20/0.png").is_file()
    assert Path("maps/step20/kernels_0.png").is_file()
    assert "step 20: ckpt_20.pt: 4 of 4 tensors loaded" in capsys.readouterr().err


def test_several_images_have_a_run_each() -> None:
    assert visualize(".", "--checkpoint", "ckpt_*.pt", "--logdir", "runs", "--out", "maps") == 0
    for name in ("cat", "dog"):
        assert steps(Path("runs", name), "/0") == [3, 20, 100]
        assert Path("maps", name, "step100", "2.png").is_file()


def test_each_step_shows_its_own_weights() -> None:
    assert visualize("dog.png", "--checkpoint", "ckpt_*.pt", "--logdir", "run") == 0
    run = read(Path("run"))
    means = []
    for event in run.Tensors("activations/2"):
        left, right, counts = tensor_util.make_ndarray(event.tensor_proto).T
        means.append(float(((left + right) / 2 * counts).sum() / counts.sum()))
    assert [round(mean / 10) for mean in means] == [0, 2, 10]


def test_a_damaged_checkpoint_is_named_and_earlier_steps_are_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("ckpt_50.pt").write_bytes(b"nothing")
    assert visualize("dog.png", "--checkpoint", "ckpt_*.pt", "--logdir", "run") == 2
    assert "'ckpt_50.pt' is not a checkpoint" in capsys.readouterr().err
    assert steps(Path("run"), "/2") == [3, 20]
