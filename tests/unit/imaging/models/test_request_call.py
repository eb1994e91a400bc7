"""A model's arguments are written behind its name, as literals."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch import nn

from fmapboard.errors import ConfigurationError
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import Call, ModelRequest, parse_call

NETS = """
from functools import partial
from torch import nn

class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, *, norm="batch"):
        super().__init__()
        self.given = n_channels, n_classes, norm
        self.conv = nn.Conv2d(n_channels, n_classes, 1)

half = partial(UNet, 3)
ready = nn.ReLU()
"""


@pytest.fixture
def nets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nets_called.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("UNet(n_channels=3, n_classes=2)", (3, 2, "batch")),
        ("UNet(1, 2, norm='in')", (1, 2, "in")),
        ("UNet (3,\n 2)", (3, 2, "batch")),
        ("half(n_classes=5)", (3, 5, "batch")),
    ],
)
def test_a_class_is_called_with_the_literals_behind_its_name(
    nets: None, call: str, given: tuple[object, ...]
) -> None:
    loaded = load_model(ModelRequest(f"nets_called:{call}"))
    assert loaded.model.given == given
    assert loaded.preprocessing.channels == given[0]


def test_arguments_in_both_places_are_combined(nets: None) -> None:
    both = load_model(ModelRequest("nets_called:UNet(n_classes=2)", model_args=["n_channels=3"]))
    assert both.model.given == (3, 2, "batch")
    args = ["n_classes=5"]
    replaced = load_model(ModelRequest("nets_called:UNet(3, n_classes=2)", model_args=args))
    assert replaced.model.given == (3, 5, "batch")


def test_other_models_take_named_arguments_too() -> None:
    loaded = load_model(ModelRequest("resnet18(num_classes=7)", weights="none"))
    assert isinstance(loaded.model.fc, nn.Linear)
    assert loaded.model.fc.out_features == 7
    with pytest.raises(ConfigurationError, match=r"its name, such as resnet18\(num_classes=10\)$"):
        load_model(ModelRequest("resnet18(7)", weights="none"))


def test_literals_are_of_every_kind() -> None:
    call = parse_call("a.b:C(-1, 2.5, 'x(y', None, True, a=[1, (2,)], b={'k': {3}}, c=b'z')")
    kwargs = {"a": [1, (2,)], "b": {"k": {3}}, "c": b"z"}
    assert call == Call("a.b:C", (-1, 2.5, "x(y", None, True), kwargs)
    assert parse_call("a.b:C()") == parse_call("a.b:C") == Call("a.b:C")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            "C(norm=batch)",
            "ValueError: .*; expected literals, with quotes around text",
        ),
        ("C(__import__('os').mkdir('stolen'))", "expected literals"),
        ("C(x=[open('stolen', 'w')])", "expected literals"),
        ("C(f'{open(1)}')", "expected literals"),
        ("C(9**9**9**9)", "expected literals"),
        ("C(*[1])", "expected literals"),
        ("C(**{'a': 1})", "and \\*\\* is not supported"),
        ("C({[]: 1})", "expected literals"),
        ("C(3", "was never closed"),
        ("C(3) or open('stolen')", "something follows the call"),
        ("C(3)(4)", "something follows the call"),
        ("C(3); import os", "invalid syntax"),
        ("C(a=1, a=2)", "given once"),
        ("C(\0)", "expected literals"),
        ("C(\ud800)", "expected literals"),
        ("C(" + "(" * 100_000 + ")", "expected literals"),
        ("C(" + "-" * 3_000 + "1)", "expected literals"),
    ],
    ids=lambda value: ascii(value[:40]),
)
def test_anything_else_is_refused_in_one_line_and_not_evaluated(
    call: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=text) as caught:
        parse_call(call)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "stolen").exists()


def test_a_module_of_the_folder_may_have_a_name_of_the_standard_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "this.py").write_text("from torch import nn\ndef net(): return nn.Conv2d(3, 1, 1)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "this", raising=False)
    assert isinstance(load_model(ModelRequest("this:net()")).model, nn.Conv2d)


def test_a_class_that_needs_arguments_says_how_to_write_them(nets: None) -> None:
    text = r"'n_classes'; arguments are written --model \"nets_called:UNet\(NAME=VALUE\)\"$"
    with pytest.raises(ConfigurationError, match=text):
        load_model(ModelRequest("nets_called:UNet(3)"))
    with pytest.raises(ConfigurationError, match="already built and takes no arguments"):
        load_model(ModelRequest("nets_called:ready(3)"))
