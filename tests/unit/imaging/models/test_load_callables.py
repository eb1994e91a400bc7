"""A user's own model, given as `package.module:callable`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from loaded_model import first_convolution
from PIL import Image
from torch import nn

from fmapboard.errors import (
    ConfigurationError,
    UnknownModel,
)
from fmapboard.imaging.models.load import Preprocessing, load_model
from fmapboard.imaging.models.request import ModelRequest


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The current folder, whose modules are unloaded after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("nets"):
            del sys.modules[name]


FACTORIES = """
import torch
from torch import nn

def colour(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
def grey(): return nn.Sequential(nn.Conv2d(1, 4, 3))
def spectral(): return nn.Sequential(nn.Conv2d(7, 4, 3))
def linear(): return nn.Linear(2, 2)
def number(): return 3
def needs(width): return nn.Conv2d(3, width, 3)
def broken(): raise RuntimeError("no\\nGPU here")
def leaves(): raise SystemExit(3)
ready = nn.Conv2d(3, 4, 3)
table = {"a": 1}
class Net(nn.Module):
    @classmethod
    def small(cls): return cls()
"""


@pytest.fixture
def nets(folder: Path) -> str:
    (folder / "nets_a.py").write_text(FACTORIES)
    return "nets_a"


def test_a_callable_of_the_current_folder_is_called(nets: str) -> None:
    loaded = load_model(ModelRequest(f"{nets}:colour"))
    assert isinstance(loaded.model, nn.Sequential)
    assert not loaded.model.training
    assert loaded.preprocessing == Preprocessing(
        size=(224, 224),
        resize=256,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        source="ImageNet mean and std (assumed)",
    )


@pytest.mark.parametrize("attribute", ["ready", "Net", "Net.small"])
def test_modules_classes_and_methods_are_models_too(nets: str, attribute: str) -> None:
    assert isinstance(load_model(ModelRequest(f"{nets}:{attribute}")).model, nn.Module)


def test_a_model_with_one_input_channel_gets_grey_images(nets: str) -> None:
    recipe = load_model(ModelRequest(f"{nets}:grey", input_size=32)).preprocessing
    assert recipe.channels == 1
    assert recipe.mean == pytest.approx((0.449,))
    assert recipe.std == pytest.approx((0.226,))
    white = recipe(Image.new("RGB", (50, 60), "white"))
    assert white.shape == (1, 32, 32)
    assert white[0, 0, 0].item() == pytest.approx((1 - 0.449) / 0.226, abs=1e-4)


def test_a_model_with_seven_input_channels_is_refused(nets: str) -> None:
    with pytest.raises(ConfigurationError, match=r"takes 7 input channels; images have 1 .* or 3"):
        load_model(ModelRequest(f"{nets}:spectral"))


def test_a_callable_can_be_given_a_checkpoint(nets: str, tmp_path: Path) -> None:
    weights = {"module.0.weight": torch.ones(4, 3, 3, 3), "module.0.bias": torch.zeros(4)}
    torch.save(weights, tmp_path / "a.pt")
    loaded = load_model(ModelRequest(f"{nets}:colour", checkpoint=tmp_path / "a.pt"))
    assert str(loaded.report) == "2 of 2 tensors loaded"
    assert first_convolution(loaded).weight.mean().item() == 1


@pytest.mark.parametrize(
    ("spec", "kind", "text"),
    [
        ("nets_a:color", UnknownModel, r"'nets_a' has no 'color' .*; closest: colour"),
        ("nets_a:xyzzy", UnknownModel, r"has no 'xyzzy' .*; name one that nets_a defines"),
        ("nets_b:net", UnknownModel, r"no module 'nets_b' \(for 'nets_b:net'\) in '/.*; change to"),
        ("nets_a.b:net", UnknownModel, r"no module 'nets_a\.b'"),
        ("a/nets_a.py:net", UnknownModel, "such as nets:Net for the file nets.py in the current"),
        (
            "nets_a.net",
            UnknownModel,
            "no model 'nets_a.net'.*; also accepted: .*:callable",
        ),
        ("nets_a:", UnknownModel, r"not written as package\.module:callable"),
        (":net", UnknownModel, r"not written as package\.module:callable"),
        ("nets_a:table", ConfigurationError, "'nets_a:table' failed: TypeError: 'dict' object is"),
        ("nets_a:number", ConfigurationError, r"not a torch\.nn\.Module; name the network's class"),
        (
            "nets_a:needs",
            ConfigurationError,
            r"'nets_a:needs' failed: TypeError: needs\(\) missing .*'width'; arguments are written "
            r'--model "nets_a:needs\(NAME=VALUE\)"$',
        ),
        ("nets_a:broken", ConfigurationError, "failed: RuntimeError: no GPU here"),
        ("nets_a:leaves", ConfigurationError, "failed: SystemExit: 3"),
    ],
)
def test_the_error_names_what_is_wrong_with_a_callable(
    nets: str, spec: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        load_model(ModelRequest(spec))
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "import nets_absent_library",
            "ModuleNotFoundError: No module named 'nets_absent_library'",
        ),
        ("def f(:", "SyntaxError: "),
        ("import sys; sys.exit(2)", "SystemExit: 2"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_fails_to_import_is_not_reported_as_missing(
    folder: Path, source: str, text: str
) -> None:
    (folder / "nets_c.py").write_text(source)
    said = f"importing 'nets_c' .* failed: {text}.*; for the traceback, run: python -c \"import ne"
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_model(ModelRequest("nets_c:f"))
    assert type(caught.value) is ConfigurationError


@pytest.mark.parametrize("spec", ["nets_a:colour", "timm:resnet18", "demo"])
def test_only_torchvision_has_named_weights(nets: str, spec: str) -> None:
    text = f"no weights 'V2' for '{spec}': neither a file nor one of DEFAULT, none"
    with pytest.raises(ConfigurationError, match=text):
        load_model(ModelRequest(spec, weights="V2"))
