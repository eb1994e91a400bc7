"""Models that take more than images get it from files, from a function, or from Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_files import noise
from module_hooks import hook_count
from pickles import CreatesFolder
from torch import nn

import fmapboard
from fmapboard.cli.main import run, run_visualize
from fmapboard.errors import CaptureError, ConfigurationError, UnknownModel
from fmapboard.imaging.forward_inputs import ForwardInputs, inputs_from

NETS = """
import torch
from torch import nn

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = nn.Conv2d(1, 2, 1, bias=False)
        self.image = nn.Conv2d(3, 2, 1, bias=False)
        torch.nn.init.ones_(self.depth.weight)
        torch.nn.init.ones_(self.image.weight)
    def forward(self, depth, image, gain=1.0):
        return self.depth(depth) + gain * self.image(image)

def both(images):
    return {"image": images, "depth": images.mean(1, keepdim=True)}
def positional(images):
    return images[:, :1], images
def pair(images):
    return (images[:, :1],), {"image": images}
def listed(images):
    return [images]
def broken(images):
    return images.nothing
number = 3
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The current folder, with a module of networks, two images and files of tensors."""
    (tmp_path / "nets_of_inputs.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nets_of_inputs", raising=False)
    (tmp_path / "photos").mkdir()
    for name in ("a", "b", "c"):
        noise(24, 24).save(tmp_path / "photos" / f"{name}.png")
    torch.save(torch.full((1, 1, 8, 8), 5.0), "one.pt")
    np.save("rows.npy", np.arange(3.0).reshape(3, 1, 1, 1) * np.ones((1, 1, 8, 8)))
    torch.save(torch.zeros(8, 8), "flat.pt")
    torch.save({"a": 1}, "none.pt")
    torch.save(CreatesFolder(tmp_path / "stolen"), "evil.pt")
    return tmp_path


def two() -> Any:
    return __import__("nets_of_inputs").Two()


def visualized(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str, str]:
    command = run if words[0] == "diff" else run_visualize
    with pytest.raises(SystemExit) as exit_of:
        command(words if words[0] == "diff" else [*words, "--model", "nets_of_inputs:Two"])
    captured = capsys.readouterr()
    return exit_of.value.code, captured.out, captured.err


def depth_ranges(out: str) -> list[str]:
    """The ranges that the tables show for the layer ``depth``."""
    rows = [line.split() for line in out.splitlines() if line.startswith("depth")]
    return [f"{row[3]} … {row[5]}" for row in rows]


def test_one_row_of_a_file_goes_with_every_image_and_images_where_they_belong(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["photos", "--input", "depth=one.pt", "--resize", "8", "--out", "maps"]
    code, out, err = visualized(capsys, *words)
    assert (code, err) == (0, "")
    assert depth_ranges(out) == ["5 … 5"] * 3
    assert "mean 0.485 0.456 0.406" in out  # the images are not grey, though the first layer is


def test_each_image_gets_its_own_row(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["photos", "--input", "depth=rows.npy", "--resize", "8", "--samples", "2"]
    code, out, _ = visualized(capsys, *words, "--out", "maps")
    assert code == 0
    assert depth_ranges(out) == ["0 … 0", "1 … 1"]


@pytest.mark.parametrize("function", ["both", "positional", "pair"])
def test_a_function_turns_images_into_all_arguments(
    here: Path, capsys: pytest.CaptureFixture[str], function: str
) -> None:
    words = ["photos", "--input", f"nets_of_inputs:{function}", "--resize", "8", "--list"]
    code, out, _ = visualized(capsys, *words)
    assert code == 0
    assert "[1, 2, 8, 8]" in out


def test_a_function_and_a_file_are_combined(here: Path) -> None:
    inputs = inputs_from(["nets_of_inputs:pair", "gain=one.pt"], 1, [])
    args, kwargs = inputs.arguments(two(), torch.ones(2, 3, 4, 4, dtype=torch.float64))
    assert [tuple(one.shape) for one in args] == [(2, 1, 4, 4)]
    assert kwargs.keys() == {"image", "gain"}
    assert kwargs["gain"].shape == (2, 1, 8, 8)  # a row per image of the batch
    assert kwargs["gain"].dtype == torch.float64


def test_every_checkpoint_of_a_series_and_both_models_of_diff_get_the_inputs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = two()
    for step in (1, 2):
        torch.save(model.state_dict(), f"ckpt_{step}.pt")
        with torch.no_grad():
            model.depth.weight *= 3
    words = ["--input", "depth=rows.npy", "--resize", "8"]
    code, _, _ = visualized(capsys, "photos", "--checkpoint", "ckpt_*.pt", *words, "--out", "maps")
    assert code == 0
    assert len(list((here / "maps" / "b").rglob("depth.png"))) == 2
    spec = ["--model", "nets_of_inputs:Two"]
    code, out, err = visualized(capsys, "diff", "ckpt_1.pt", "ckpt_2.pt", "photos", *spec, *words)
    assert code == 1
    assert "first difference: `depth`" in out
    assert "preprocessing: --resize as given, otherwise ImageNet" in err


INVALID: dict[str, tuple[type[Exception], str]] = {
    "depth": (ConfigurationError, r"expected NAME=FILE, such as depth=depth\.pt, or package"),
    "two words=one.pt": (ConfigurationError, "expected NAME=FILE"),
    "depth=": (ConfigurationError, "expected NAME=FILE"),
    "depth=oen.pt": (ConfigurationError, r"no such file: 'oen\.pt'; closest: .*one\.pt"),
    "depth=evil.pt": (ConfigurationError, "cannot be read as tensors; code in it is not run, save"),
    "depth=none.pt": (
        ConfigurationError,
        "without tensors; --forward-arg NAME=VALUE takes",
    ),
    "depth=photos/a.png": (ConfigurationError, r"cannot be read as tensors; .*torch\.save\(tensor"),
    "depth=flat.pt": (
        ConfigurationError,
        r"the input 'depth' has shape \[8, 8\]: .* expected 1 \(.*\) or 2 \(one row per image\)",
    ),
    "nets_of_inputs:bth": (UnknownModel, "has no 'bth' .*; closest: both"),
    "nets_absent:f": (UnknownModel, "no module 'nets_absent'"),
}


@pytest.mark.parametrize("given", INVALID)
def test_an_invalid_input_is_refused_with_what_to_do(here: Path, given: str) -> None:
    kind, text = INVALID[given]
    with pytest.raises(kind, match=text) as caught:
        inputs_from([given], 2, [])
    assert "\n" not in str(caught.value)
    assert not (here / "stolen").exists()


def test_an_input_is_given_once(here: Path) -> None:
    for given in ("depth=one.pt", "nets_of_inputs:both"):
        with pytest.raises(ConfigurationError, match=f"--input '{given}': it is given already"):
            inputs_from([given] * 2, 1, [])
    with pytest.raises(ConfigurationError, match="it is given already; give it once"):
        inputs_from(["depth=one.pt"], 1, ["depth=3"])


def test_what_forward_needs_and_lacks_is_said(here: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"takes depth, image, gain: .*required.*'image'"):
        inputs_from([], 1, []).check(two())
    with pytest.raises(ConfigurationError, match=r"unexpected keyword argument 'dpeth'; wh"):
        inputs_from(["dpeth=one.pt", "image=one.pt"], 1, []).check(two())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("listed", r"listed\(\) returned a list: expected a tensor, a tuple of positional"),
        (
            "broken",
            r"broken\(\) raised AttributeError: .* \(images of shape \[1, 3, 8, 8\]",
        ),
    ],
)
def test_the_error_names_the_function(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    function = f"nets_of_inputs:{name}"
    code, _, err = visualized(capsys, "photos", "--input", function, "--resize", "8", "--list")
    assert code == 1
    assert err.count("\n") == 2  # the preprocessing, and the error
    with pytest.raises(CaptureError, match=text):
        inputs_from([function], 1, []).arguments(two(), torch.ones(1, 3, 8, 8))


def test_python_takes_the_same_inputs_and_leaves_no_hook(here: Path) -> None:
    model, x = two(), torch.rand(2, 3, 8, 8)
    rows = torch.stack([torch.full((1, 8, 8), 3.0), torch.full((1, 8, 8), 4.0)])
    for number, inputs in enumerate(({"depth": rows}, lambda images: (rows[:1], images))):
        done = fmapboard.visualize(model, x, out=here / str(number), inputs=inputs)
        assert depth_ranges(done.table) == ["3 … 3"]
        assert hook_count(model) == 0
    with pytest.raises(ConfigurationError, match=r"the input 'depth' has shape \[2, 1, 8, 8\]"):
        fmapboard.visualize(model, x[:1], inputs={"depth": rows})
    with pytest.raises(ConfigurationError, match="inputs=3: expected a dict"):
        fmapboard.visualize(model, x, inputs=3)  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match=r"<lambda>\(\) raised ZeroDivisionError"):
        fmapboard.visualize(model, x, out=here / "none", inputs=lambda images: 1 / 0)
    assert hook_count(model) == 0


def test_images_are_pixel_values_of_a_model_that_takes_text_first() -> None:
    class Both(nn.Module):
        def forward(self, input_ids: Any = None, mask: Any = None, pixel_values: Any = None) -> Any:
            return input_ids, pixel_values

    model, x = Both(), torch.rand(1, 3, 4, 4)
    with ForwardInputs.of({"input_ids": torch.tensor([[7]])}, 1).applied(model):
        ids, pixels = model(x)
    assert (ids.tolist(), ids.dtype) == ([[7]], torch.int64)
    assert pixels is x
