"""Arguments of a model's constructor and forward pass, from the command line."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fmapboard.cli.main import run, run_visualize
from fmapboard.demo.bundled import bundled
from fmapboard.errors import ConfigurationError
from fmapboard.imaging.forward_inputs import inputs_from
from fmapboard.imaging.models.request import Call, call_factory, parse_arguments


def test_values_are_python_literals_and_text_otherwise() -> None:
    given = ["a=3", "b=0.5", "c=[1, 2]", "d=None", "e=batch", "f='3'", "g=", "h=x=y", "i={'j': 1}"]
    assert parse_arguments(given, "--model-arg") == {
        "a": 3, "b": 0.5, "c": [1, 2], "d": None, "e": "batch", "f": "3", "g": "", "h": "x=y",
        "i": {"j": 1},
    }  # fmt: skip


@pytest.mark.parametrize("given", ["width", "=3", "two words=3", "layers.0=3"])
def test_anything_but_a_name_and_a_value_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--model-arg '{given}': expected NAME=VALUE"):
        parse_arguments([given], "--model-arg")


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'a' is given twice; give it once"):
        parse_arguments(["a=1", "a=2"], "--model-arg")


def test_a_value_is_never_executed() -> None:
    assert parse_arguments(["a=__import__('os')"], "--model-arg") == {"a": "__import__('os')"}


# -- constructors --------------------------------------------------------------------------------


def test_a_class_of_a_library_is_called_with_the_arguments() -> None:
    arguments = {"in_channels": 3, "out_channels": 5, "kernel_size": 1}
    model = call_factory(Call("torch.nn:Conv2d", kwargs=arguments))
    assert isinstance(model, nn.Conv2d)
    assert model.out_channels == 5


def test_an_unknown_argument_is_refused_with_the_way_to_write_arguments() -> None:
    text = r"failed: TypeError: .*'width'; arguments are written --model \"torch.nn:Conv2d\(NAME="
    with pytest.raises(ConfigurationError, match=text):
        call_factory(Call("torch.nn:Conv2d", kwargs={"width": 3}))


def test_an_existing_module_takes_no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ready", nn.ReLU(), raising=False)
    monkeypatch.setitem(sys.modules, "models_here", sys.modules[__name__])
    with pytest.raises(ConfigurationError, match=r"is already built and takes no arguments"):
        call_factory(Call("models_here:ready", kwargs={"inplace": True}))


# -- forward -------------------------------------------------------------------------------------


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1)

    def forward(self, x: Tensor, t: float, *, shift: float, mode: str = "a") -> Tensor:
        maps: Tensor = self.conv(x) * t + shift
        return maps


def test_forward_always_gets_the_arguments() -> None:
    model, images = Scaled(), torch.rand(1, 3, 4, 4)
    inputs = inputs_from([], 1, ["t=2.0", "shift=1.0"])
    inputs.check(model)
    with inputs.applied(model):
        assert torch.equal(model(images), model.conv(images) * 2 + 1)


def test_a_forward_that_needs_more_than_images_is_refused_with_a_fix() -> None:
    with pytest.raises(ConfigurationError) as caught:
        inputs_from([], 1, []).check(Scaled())
    assert str(caught.value) == (
        "Scaled.forward() takes x, t, shift, mode: missing a required argument: 't'; what it takes "
        "in addition to images comes from --forward-arg NAME=VALUE, --input NAME=FILE, "
        "inputs={'NAME': …}, or from a function of images: --input package.module:function or "
        "inputs=function"
    )


def test_an_argument_that_forward_lacks_is_refused_with_those_it_has() -> None:
    text = r"Scaled\.forward\(\) takes x, t, shift, mode: .*(unexpected|missing)"
    with pytest.raises(ConfigurationError, match=text):
        inputs_from([], 1, ["mod=1"]).check(Scaled())


def test_a_forward_without_an_argument_for_images_is_refused() -> None:
    class Empty(nn.Module):
        def forward(self) -> None: ...

    with pytest.raises(ConfigurationError, match=r"Empty\.forward\(\) takes nothing: too many"):
        inputs_from([], 1, []).check(Empty())


def test_a_forward_that_takes_anything_takes_every_argument() -> None:
    class Open(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> int:
            return len(kwargs)

    model = Open()
    inputs = inputs_from([], 1, ["t=1"])
    inputs.check(model)
    with inputs.applied(model):
        assert model(torch.ones(1)) == 1


NETS = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
    def forward(self, x, t):
        return self.conv(x * t)
"""


def test_both_kinds_of_arguments_are_options_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nets_of_arguments.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    visualize = functools.partial(_run, capsys)
    spec = ["--model", "nets_of_arguments:Net", "--model-arg", "width=6", "--out", "maps"]
    code, _, err = visualize([*spec, "--input-size", "32"])
    assert (code, err.count("\n")) == (2, 1)
    assert "missing a required argument: 't'" in err
    assert not (tmp_path / "maps").exists()
    code, out, err = visualize([*spec, "--input-size", "32", "--forward-arg", "t=0"])
    assert (code, err) == (0, "")
    assert "6x3x3x3" in out
    assert "6 of 6" in out  # constant: the input is 0
    code, out, _ = visualize([*spec, "--list"])
    assert code == 0  # nothing runs


def test_patches_takes_arguments_of_forward_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nets_of_arguments.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nets_of_arguments", raising=False)
    words = ["patches", str(bundled("photographs") / "chelsea.jpg"), "--model"]
    words += ["nets_of_arguments:Net(width=2)", "--resize", "32", "--out", "crops"]
    with pytest.raises(SystemExit) as refused:
        run(words)
    assert refused.value.code == 2
    assert "missing a required argument: 't'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as done:
        run([*words, "--logdir", "run", "--forward-arg", "t=2"])
    assert done.value.code == 0
    assert "2 of 2" in capsys.readouterr().out


def _run(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as exit_of:
        run_visualize(arguments)
    captured = capsys.readouterr()
    return exit_of.value.code, captured.out, captured.err
