"""``fmapboard diff``: its output, files, exit status and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from run_reader import read, tags_of
from tensorboard.util.tensor_util import make_ndarray
from torch import Tensor, nn

from fmapboard.cli.main import run

NETS = """
from torch import nn

def build(scale=1.0):
    class Net(nn.Sequential):
        def forward(self, x):
            x = self[2](self[1](self[0](x)))
            return self[3](x * scale)
    return Net(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3))

def scaled():
    return build(1.1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the network, two photographs and the checkpoint ``a.pt``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("diffed_nets.py").write_text(NETS)
    for number in (1, 2):
        noise = np.random.default_rng(number).integers(0, 256, (40, 40, 3), np.uint8)
        Image.fromarray(noise).save(f"photo{number}.png")
    torch.save(weights(), "a.pt")
    return tmp_path


def weights() -> dict[str, Tensor]:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3))
    return net.state_dict()


def changed(name: str) -> None:
    state = weights()
    state[name] = state[name] + 0.1
    torch.save(state, "b.pt")


MODEL = ("--model", "diffed_nets:build", "--input-size", "24")


def diff(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["diff", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_equal_checkpoints_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(weights(), "b.pt")
    status, out, _ = diff(capsys, "a.pt", "b.pt", *MODEL, "photo1.png")
    assert status == 0
    assert out.splitlines()[-1] == "no difference above 1e-05 in 4 layers"


def test_a_buffer_that_differs_exits_with_1_and_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed("1.running_mean")
    status, out, _ = diff(capsys, "a.pt", "b.pt", *MODEL, "photo1.png", "photo2.png")
    assert status == 1
    assert out.splitlines()[-1].startswith("first difference: `1` (relative error of running_mean ")
    table = [line.split() for line in out.splitlines()]
    assert table[0] == ["layer", "type", "error", "in", "error", "out", "added"]
    assert table[1] == ["0", "Conv2d", "0", "0", "0"]


def test_the_table_says_what_its_numbers_are_and_what_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = diff(capsys, "a.pt", "a.pt", *MODEL, "photo1.png", "photo2.png")
    assert "Relative errors: norm of the difference / the larger of both norms." in out
    assert out.splitlines()[-2] == "compared on 2 images"
    default = "compared on the bundled photograph chelsea.jpg, as no image was given"
    _, out, _ = diff(capsys, "a.pt", "a.pt", *MODEL)
    assert out.splitlines()[-2] == default
    _, out, err = diff(capsys, "a.pt", "a.pt", *MODEL, "--json")
    assert err.splitlines()[-1] == default
    assert json.loads(out)["first"] is None


def test_files_of_a_folder_that_cannot_be_read_are_left_out_and_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place in ("photos", "broken"):
        (Path(place) / "deep").mkdir(parents=True)
        (Path(place) / "a.png").write_bytes(Path("photo1.png").read_bytes()[:900])
        (Path(place) / "deep" / "notes.jpg").write_text("not an image")
    for number in (1, 2):
        Path(f"photo{number}.png").rename(f"photos/photo{number}.png")
    changed("3.bias")
    left_out = "left out: deep/notes.jpg: 'photos/deep/notes.jpg' is not an image that Pillow can"
    for second, last in (
        ("b.pt", "first difference: `3` (relative error of bias "),
        ("a.pt", "no difference above 1e-05 in 4 layers"),
    ):
        status, out, err = diff(capsys, "a.pt", second, *MODEL, "photos", "--out", "maps")
        assert (status, out.splitlines()[-2]) == (2, "compared on 2 of 4 images")
        assert out.splitlines()[-1].startswith(last)
        assert left_out in err
        assert "left out: a.png: cannot read the image 'photos/a.png': " in err
        assert err.splitlines()[-1] == (
            "fmapboard: 2 of 4 files could not be read and were left out, see above; everything "
            "else is done. Repair or remove them, and run this again"
        )
    assert {path.parent.name for path in Path("maps/a").rglob("*.png")} == {"step0", "step1"}
    status, _, err = diff(capsys, "a.pt", "b.pt", *MODEL, "broken")
    assert (status, err.splitlines()[-1][:40]) == (2, "fmapboard: none of 2 files can be read: ")


def test_rows_of_inputs_belong_to_files_also_if_one_of_them_cannot_be_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("scaled_nets.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, power=1):\n"
        "        super().__init__()\n"
        "        self.conv, self.end, self.power = nn.Conv2d(3, 4, 3), nn.Identity(), power\n"
        "    def forward(self, x, by):\n"
        "        return self.end(self.conv(x) * by[:, None, None, None] ** self.power)\n"
        "def squared():\n"
        "    return Net(2)\n"
    )
    torch.save({f"conv.{n}": p for n, p in nn.Conv2d(3, 4, 3).named_parameters()}, "c.pt")
    Path("photos").mkdir()
    Path("photos/a.png").write_text("not an image")  # row 0; 1 and 2 are equal to their squares
    for number in (1, 2):
        Path(f"photo{number}.png").rename(f"photos/photo{number}.png")
    torch.save(torch.tensor([3.0, 1.0, 1.0]), "by.pt")
    model = ("--model", "scaled_nets:Net", "--model-b", "scaled_nets:squared")
    _, out, _ = diff(capsys, "c.pt", "c.pt", *model, "--input", "by=by.pt", "photos")
    assert out.splitlines()[-1].startswith("no difference")


def test_json_has_the_first_difference_and_all_layers(capsys: pytest.CaptureFixture[str]) -> None:
    changed("3.bias")
    status, out, _ = diff(capsys, "a.pt", "b.pt", *MODEL, "--json", "photo1.png")
    answer = json.loads(out)
    assert (status, answer["first"], answer["tolerance"]) == (1, "3", 1e-5)
    assert [layer["name"] for layer in answer["layers"]] == ["0", "1", "2", "3"]
    last = answer["layers"][-1]
    assert last["error_in"] == 0.0
    assert last["error_out"] == last["added"] > 0.01


def test_another_network_for_the_second_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--model-b", "diffed_nets:scaled", "photo1.png")
    status, out, _ = diff(capsys, "a.pt", "a.pt", *MODEL, *options)
    assert status == 1
    assert out.splitlines()[-1] == "first difference: between `2` and `3` (mul in both)"


def test_tensors_that_are_in_neither_checkpoint_are_equal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = weights()
    del state["3.weight"]
    torch.save(state, "b.pt")
    assert diff(capsys, "b.pt", "b.pt", *MODEL, "photo1.png")[0] == 0
    status, out, err = diff(capsys, "a.pt", "b.pt", *MODEL, "photo1.png")
    assert (status, "1 missing: 3.weight" in err) == (1, True)
    assert out.splitlines()[-1].startswith("first difference: `3` (relative error of weight ")


def test_a_tolerance_is_applied(capsys: pytest.CaptureFixture[str]) -> None:
    changed("3.bias")
    status, out, _ = diff(capsys, "a.pt", "b.pt", *MODEL, "--tolerance", "1.5", "photo1.png")
    assert (status, out.splitlines()[-1]) == (0, "no difference above 1.5 in 4 layers")


def test_pictures_of_both_and_of_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    changed("1.running_mean")
    status, *_ = diff(
        capsys, "a.pt", "b.pt", *MODEL, "photo1.png", "--out", "maps", "--log-dir", "runs"
    )  # fmt: skip
    assert status == 1
    for side in ("a", "b", "difference"):
        names = sorted(path.name for path in Path("maps", side).glob("*.png"))
        assert [name for name in names if "input" not in name] == ["0.png", "1.png", "3.png"]
        tags = tags_of(read(Path("runs", side)))
        assert len([tag for tag in tags if tag.startswith("feature_maps")]) == 3
    equal = np.asarray(Image.open("maps/a/0.png")) == np.asarray(Image.open("maps/b/0.png"))
    assert equal.all()
    nothing = np.asarray(Image.open("maps/difference/0.png").convert("RGB"))
    something = np.asarray(Image.open("maps/difference/3.png").convert("RGB"))
    colours = np.unique(nothing.reshape(-1, 3), axis=0)
    assert len(colours) <= 2
    assert colours.max(0).min() > 240  # white, the colour of 0
    assert len(np.unique(something.reshape(-1, 3), axis=0)) > 20


def test_channels_without_a_difference_are_no_fault_of_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed("1.running_mean")
    diff(capsys, "a.pt", "b.pt", *MODEL, "photo1.png", "--layers", "*", "--log-dir", "runs")
    difference = read(Path("runs", "difference"))
    faults = [tag for tag in tags_of(difference) if "_channels/" in tag]
    assert faults
    for tag in faults:
        assert [float(make_ndarray(e.tensor_proto)) for e in difference.Tensors(tag)] == [0]


def test_an_error_that_nobody_expects_does_not_exit_like_a_difference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("fmapboard.cli.commands.diff.difference", broken)
    status, _, err = diff(capsys, "a.pt", "a.pt", *MODEL, "photo1.png")
    assert (status, err.splitlines()[-1]) == (2, "fmapboard: RuntimeError: out of memory")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("a.pt", "absent.pt", *MODEL), "no such checkpoint: 'absent.pt'"),
        (("a.pt", "photo1.png", *MODEL), "'photo1.png' is not a checkpoint"),
        (("a.pt", "a.pt", *MODEL, "absent.png"), "no such file or folder: 'absent.png'"),
        (("a.pt", "a.pt", *MODEL, "a.pt"), "'a.pt' is a checkpoint, not an image"),
        (("a.pt", "a.pt"), "Missing option '--model'"),
        (("a.pt", "a.pt", *MODEL, "--tolerance", "-1"), "-1.0 is not in the range"),
        (("a.pt", "a.pt", *MODEL, "--out", "m", "--layers", "x"), "no layer matches 'x'"),
        (("a.pt", "a.pt", *MODEL, "--device", "nonsense"), "; --device cpu always can"),
        (("a.pt", "a.pt", "--model", "diffed_nets:build", "--input-size", "2"), "model_a cannot"),
    ],
)
def test_anything_that_cannot_be_compared_exits_with_2_in_one_line(
    arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = diff(capsys, *arguments)
    assert status == 2
    assert text in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("fmapboard: ")
