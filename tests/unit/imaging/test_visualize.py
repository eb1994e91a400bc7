"""`fmapboard.visualize` does for a Python object what the `visualize` command does for a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from extracted_maps import random_images, untrained
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from PIL import Image
from run_reader import read, steps_of
from torch import Tensor, nn
from torchvision.transforms import v2

import fmapboard
from fmapboard import ConfigurationError, ForwardError, ImageError, LayerNotFound
from fmapboard.demo.bundled import bundled

PHOTOGRAPH = bundled("photographs") / "chelsea.jpg"


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3)).train()


def pictures(folder: Path) -> dict[str, Any]:
    return {
        path.relative_to(folder).as_posix(): np.asarray(Image.open(path))
        for path in sorted(folder.rglob("*.png"))
    }


def test_a_tensor_is_drawn_at_the_given_step_for_tensorboard_and_as_files(tmp_path: Path) -> None:
    model, x = network(), random_images(40)
    before = state_of(model)
    done = fmapboard.visualize(
        model, x, log_dir=tmp_path / "run", out=tmp_path / "maps", step=322, kernels=True
    )
    assert_unchanged(before, state_of(model))
    assert hook_count(model) == 0
    assert (done.log_dir, done.out, done.steps) == (
        tmp_path / "run",
        tmp_path / "maps",
        (322, 323),
    )
    events = read(tmp_path / "run")
    assert steps_of(events, "feature_maps_4x3x3x3/0") == [322, 323]
    assert steps_of(events, "kernels_4x3x3x3/0") == [322]
    assert [files["2"] for files in done.files] == [
        [tmp_path / "maps" / "image0" / "2.png"],
        [tmp_path / "maps" / "image1" / "2.png"],
    ]
    grid = fmapboard.draw(fmapboard.extract(model.eval(), x)["2"], sample=1)
    drawn = pictures(tmp_path / "maps")["image1/2.png"]
    assert np.abs(drawn.astype(int) - np.asarray(grid).astype(int)).max() <= 1
    lines = repr(done).splitlines()
    assert lines[0] == f"2 images at step 322, log_dir={tmp_path / 'run'}, out={tmp_path / 'maps'}"
    assert lines[2].split()[:3] == ["0", "4x3x3x3", "4×38×38"]


def test_a_file_is_drawn_as_the_command_draws_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fmapboard.cli.main import run_visualize

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_net.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def net():\n"
        "    torch.manual_seed(3)\n"
        "    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.Conv2d(4, 4, 3))\n"
    )
    with pytest.raises(SystemExit) as ended:
        run_visualize([str(PHOTOGRAPH), "--model", "my_net:net", "--out", "command"])
    assert ended.value.code == 0
    import my_net

    fmapboard.visualize(my_net.net(), PHOTOGRAPH, out="python", layers="*")
    fmapboard.visualize(my_net.net(), [Image.open(PHOTOGRAPH)], out="pil")
    by_command = pictures(tmp_path / "command")
    for folder in ("python", "pil"):
        found = pictures(tmp_path / folder)
        assert found.keys() == by_command.keys() == {"0.png", "1.png", "network_input_sample_0.png"}
        assert all(np.array_equal(found[name], by_command[name]) for name in found)


def test_without_a_place_both_are_written_below_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = fmapboard.visualize(network(), torch.rand(3, 40, 40))
    assert done.log_dir == Path("runs/visualize")
    assert done.files[0]["0"] == [Path("runs/visualize/png/0.png")]
    assert list(Path("runs/visualize").glob("*tfevents*"))


def test_a_second_call_at_a_later_step_adds_to_the_run(tmp_path: Path) -> None:
    model = network()
    for step in (3, 7):
        fmapboard.visualize(model, random_images(40, batch=1), log_dir=tmp_path, step=step)
    events = read(tmp_path)
    assert steps_of(events, "feature_maps_4x3x3x3/0") == [3, 7]


def test_a_transform_prepares_files_and_pil_images(tmp_path: Path) -> None:
    prepare = v2.Compose([v2.Resize((32, 48)), v2.PILToTensor(), v2.ToDtype(torch.float32)])
    seen: list[Tensor] = []
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    model.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    image = Image.open(PHOTOGRAPH)
    done = fmapboard.visualize(model, [PHOTOGRAPH, image], out=tmp_path, transform=prepare)
    assert torch.equal(seen[0], prepare(image)[None])
    assert [list(files) for files in done.files] == [["0"], ["0"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chelsea", "image1"]


@pytest.mark.slow
def test_a_resnet_is_drawn_with_attribution(tmp_path: Path) -> None:
    model = untrained("resnet18")
    done = fmapboard.visualize(
        model, [PHOTOGRAPH], out=tmp_path, attribution=True, target=281, layers="layer1.*"
    )
    assert list(done.files[0]) == [f"layer1.{b}.conv{c}" for b in (0, 1) for c in (1, 2)]
    assert any("attribution" in name for name in pictures(tmp_path))


def test_a_failing_pass_names_the_layer_and_what_ran(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(7, 7))
    with pytest.raises(ForwardError) as raised:
        fmapboard.visualize(model, random_images(40), out=tmp_path)
    assert raised.value.layer == "1"
    assert "ran before it:\n  0  4x3x3x3  float32 [1, 3, 40, 40]" in str(raised.value)


def test_the_command_prints_what_ran_and_then_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fmapboard.cli.main import run_visualize

    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad_net.py").write_text(
        "from torch import nn\n"
        "def net():\n"
        "    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(7, 7))\n"
    )
    for options in (["--out", "maps"], ["--list"]):
        with pytest.raises(SystemExit) as ended:
            run_visualize([str(PHOTOGRAPH), "--model", "bad_net:net", *options])
        assert ended.value.code == 1
        *before, ran, last = capsys.readouterr().err.splitlines()
        assert before[-1] == "ran before the error:"
        assert " ".join(ran.split()) == (
            "0 4x3x3x3 float32 [1, 3, 224, 224] → float32 [1, 4, 222, 222]"
        )
        assert last.startswith("visualize: 1 (Linear) raised RuntimeError: ")


def test_list_prints_the_table_and_with_an_image_the_output_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fmapboard.cli.main import run_visualize

    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed_net.py").write_text(
        "from torch import nn\n"
        "def net():\n"
        "    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n"
    )
    printed = []
    for words in (["--list"], [str(PHOTOGRAPH), "--list"], ["--list", "--layers", "1"]):
        with pytest.raises(SystemExit):
            run_visualize([*words, "--model", "listed_net:net"])
        printed.append(capsys.readouterr().out.rstrip("\n"))
    import listed_net

    model = listed_net.net()
    assert printed == [
        repr(fmapboard.layers(model)),
        repr(fmapboard.layers(model, torch.zeros(1, 3, 224, 224))),
        repr(fmapboard.layers(model, only="1")),
    ]
    assert list(tmp_path.glob("runs")) == []


@pytest.mark.parametrize(
    ("images", "options", "error", "text"),
    [
        (torch.rand(4, 4), {}, ConfigurationError, r"images of shape \[4, 4\]: expected"),
        (torch.rand(0, 3, 4, 4), {}, ConfigurationError, r"images of shape \[0, 3, 4, 4\]"),
        ([], {}, ConfigurationError, r"images=\[\]: expected at least one"),
        ([torch.rand(3, 4, 4)], {}, ConfigurationError, r"torch\.stack\(images\)"),
        ("missing.jpg", {}, ImageError, r"no such file or folder: 'missing\.jpg'"),
        (torch.rand(1, 3, 8, 8), {"step": -1}, ConfigurationError, "step=-1"),
        (torch.rand(1, 3, 8, 8), {"batch_size": 0}, ConfigurationError, "batch_size=0"),
        (torch.rand(1, 3, 8, 8), {"colormap": "jet"}, ConfigurationError, "no palette 'jet'"),
        (torch.rand(1, 3, 8, 8), {"scale": "locked"}, ConfigurationError, "scale='locked'"),
        (torch.rand(1, 3, 8, 8), {"depth": -1}, ConfigurationError, "depth=-1"),
        (torch.rand(1, 3, 8, 8), {"target": 1}, ConfigurationError, "target= needs attribution"),
        (torch.rand(1, 3, 8, 8), {"layers": "x"}, LayerNotFound, "no layer matches 'x'"),
        (torch.rand(1, 3, 8, 8), {"transform": abs}, ConfigurationError, "; pass the transf"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(
    images: Any,
    options: dict[str, Any],
    error: type[Exception],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        fmapboard.visualize(network(), images, **options)
    assert list(tmp_path.iterdir()) == []
