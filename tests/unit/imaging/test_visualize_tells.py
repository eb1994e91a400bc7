"""What ``visualize`` tells besides its pictures: weights, classes, layers that never ran, files."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from run_reader import read, tags_of
from tab_client import open_tab

import fmapboard
from fmapboard.cli.main import run as run_fmapboard
from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled
from fmapboard.errors import CaptureError
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest

PHOTOS = bundled("photographs")
NETS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 3)
        self.unused = nn.Conv2d(2, 2, 3)
        self.head = nn.Conv2d(2, 2, 1)

    def forward(self, x):
        return self.head(self.second(self.first(x)))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("telling_nets.py").write_text(NETS)


def visualize(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_of:
        run_visualize([str(PHOTOS / "chelsea.jpg"), *arguments])
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code


MODEL = ("--model", "telling_nets:Net", "--input-size", "32")


def partial_checkpoint() -> str:
    state = importlib.import_module("telling_nets").Net().state_dict()
    kept = {n: t for n, t in state.items() if not n.startswith("second") and n != "head.bias"}
    torch.save(kept, "partial.pt")
    return "partial.pt"


@pytest.mark.parametrize("command", ["visualize", "patches"])
def test_a_layer_whose_weights_were_not_in_the_checkpoint_says_random(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (*MODEL, "--checkpoint", partial_checkpoint(), "--out", "maps")
    with pytest.raises(SystemExit) as exit_of:
        run_fmapboard([command, str(PHOTOS / "chelsea.jpg"), *options])
    assert exit_of.value.code == 0
    printed = capsys.readouterr().out.splitlines()
    assert any(re.match(r"layer +kernel shape +weights", line) for line in printed)
    rows = {line.split()[0]: line for line in printed if ".png" in line}
    assert list(rows) == ["first", "second", "head"]
    assert " random " in rows["second"]
    assert " partly random " in rows["head"]
    assert "random" not in rows["first"]


def test_a_complete_checkpoint_has_no_column_of_weights(
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.save(importlib.import_module("telling_nets").Net().state_dict(), "all.pt")
    assert visualize(*MODEL, "--checkpoint", "all.pt", "--out", "maps") == 0
    assert "weights" not in capsys.readouterr().out


def test_a_weight_that_is_loaded_under_another_name_is_not_random() -> None:
    state = importlib.import_module("telling_nets").Tied().state_dict()
    del state["second.weight"]
    torch.save(state, "tied.pt")
    loaded = load_model(ModelRequest("telling_nets:Tied", checkpoint=Path("tied.pt")))
    assert loaded.report is not None
    assert loaded.report.missing == ("second.weight",)
    assert loaded.not_loaded() == {}


def test_a_selection_of_which_no_layer_ran_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert visualize(*MODEL, "--layers", "unused", "--out", "maps") == 1
    assert capsys.readouterr().err == (
        "visualize: no selected layer ran, or none returned a tensor; select others with layers= "
        "(--layers): fmapboard.layers(model, images) shows which ones run\n"
    )
    net = importlib.import_module("telling_nets").Net()
    with pytest.raises(CaptureError, match="no selected layer ran"):
        fmapboard.visualize(net, torch.rand(2, 3, 16, 16), layers="unused", out="maps")


def test_the_last_line_names_layers_without_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert visualize(*MODEL, "--out", "maps") == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 image; no NaN; no infinity; no output of unused"
    )


def test_attribution_prints_the_class_of_each_image_and_its_score(
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = [str(PHOTOS / f"{name}.jpg") for name in ("rocket", "coffee", "brick")]
    assert visualize(*more, "--attribution", "--logdir", "run") == 0
    printed = capsys.readouterr().out
    found = re.findall(r"^(\w+)\.jpg: class (\d) \((\w+)\), score (\S+)$", printed, re.MULTILINE)
    assert [one[0] for one in found] == ["chelsea", "rocket", "coffee", "brick"]
    assert [one[2] for one in found[:2]] == ["chelsea", "rocket"]
    net = load_model(ModelRequest("demo"))
    image = net.preprocessing.fit(Image.open(PHOTOS / "chelsea.jpg").convert("RGB"))
    scores = net.model(net.preprocessing.normalize(image[None]))[0].detach()
    assert found[0][3] == f"{float(scores.max()):.4g}"
    assert int(found[0][1]) == int(scores.argmax())
    facts = open_tab(Path.cwd()).ask("data/attribution", run="run")
    name = facts["series"][0]["scores"][0]["name"]  # as the tab says it
    assert name == f"class {found[0][1]} ({found[0][2]})"


def test_python_returns_the_class_of_each_image_and_its_score() -> None:
    net = load_model(ModelRequest("demo")).model
    images = torch.rand(2, 3, 64, 64)
    done = fmapboard.visualize(net, images, attribution=True, target=3, out="maps", layers="conv1")
    scores = net(images)[:, 3].detach().tolist()
    assert [name for name, _ in done.scores] == ["class 3", "class 3"]
    assert [value for _, value in done.scores] == pytest.approx(scores, rel=1e-4)
    assert f"class 3, score {scores[0]:.4g}" in repr(done)


def pixels(path: str) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def test_labels_are_in_the_files_and_not_in_tensorboard() -> None:
    for name, options in (("plain", ()), ("labelled", ("--labels",))):
        assert visualize("--layers", "conv1", "--attribution", "--kernels", *options,
                         "--logdir", f"runs/{name}", "--out", name) == 0  # fmt: skip
    files = sorted(path.name for path in Path("plain").iterdir())
    assert files == sorted(path.name for path in Path("labelled").iterdir())
    for file in files:
        plain, labelled = pixels(f"plain/{file}"), pixels(f"labelled/{file}")
        assert (labelled.shape > plain.shape) == ("network_input" not in file), file
    runs = [read(Path("runs", name)) for name in ("plain", "labelled")]
    for tag in tags_of(runs[0]):
        if tag.startswith(("feature_maps", "kernels", "attribution/")):
            one, other = (list(run.Tensors(tag)[0].tensor_proto.string_val) for run in runs)
            assert one == other, tag


def test_labels_of_a_series_of_checkpoints_and_in_python() -> None:
    for step in (1, 2):
        torch.save(importlib.import_module("telling_nets").Net().state_dict(), f"ckpt_{step}.pt")
    series = (*MODEL, "--checkpoint", "ckpt_*.pt", "--layers", "first")
    assert visualize(*series, "--out", "plain") == 0
    assert visualize(*series, "--out", "labelled", "--labels") == 0
    assert pixels("labelled/step2/first.png").shape > pixels("plain/step2/first.png").shape
    net, images = importlib.import_module("telling_nets").Net(), torch.rand(1, 3, 40, 40)
    fmapboard.visualize(net, images, out="a")
    fmapboard.visualize(net, images, out="b", labels=True)
    assert pixels("b/first.png").shape > pixels("a/first.png").shape


def test_a_second_image_in_the_same_folder_does_not_overwrite_the_first_silently(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    said = "overwrote 2 PNG files in maps; give each run another folder"
    options = ("--layers", "conv1", "--out", "maps")
    assert visualize(*options) == 0
    assert capsys.readouterr().err == ""
    assert visualize(*options) == 0
    assert capsys.readouterr().err == f"{said}\n"
    net = load_model(ModelRequest("demo")).model
    fmapboard.visualize(net, torch.rand(1, 3, 64, 64), layers="conv1", out="maps")
    assert [record.getMessage() for record in caplog.records] == [f"fmapboard: {said}"]
    for overwritten in (False, True):
        caplog.clear()
        fmapboard.patches(net, torch.rand(2, 3, 32, 32), "conv1", out="crops")
        assert bool(caplog.records) is overwritten
