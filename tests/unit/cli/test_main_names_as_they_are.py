"""Names of files, layers and tensors are printed as they are, without control of the terminal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

import fmapboard
from fmapboard.cli.main import run
from fmapboard.errors import escaped, log

NETS = r"""
from torch import nn

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({
            "up[/2]": nn.Conv2d(3, 4, 3), "[red]x:smile:": nn.Conv2d(4, 4, 3),
            "a\x1b[2Jb\nc": nn.Conv2d(4, 2, 3),
        })

    def forward(self, x):
        for part in self.parts.values():
            x = part(x)
        return x
"""
LAYERS = ("parts.up[/2]", "parts.[red]x:smile:", r"parts.a\x1b[2Jb\nc")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the network, an image, and two checkpoints with a name that is not in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("oddly_named_nets.py").write_text(NETS)
    Image.new("RGB", (24, 24), "teal").save("cat\x1b]0;t[b].png")
    scope: dict[str, type[nn.Module]] = {}
    exec(NETS, scope)
    state = scope["Named"]().state_dict()
    torch.save({**state, "more\x1b[31m[/b]": torch.ones(1)}, "a.pt")
    state["parts.a\x1b[2Jb\nc.bias"] += 1
    torch.save(state, "b.pt")
    return tmp_path


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_of:
        run(arguments)
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code


MODEL = ("--model", "oddly_named_nets:Named", "--input-size", "24")
IMAGE = "cat\x1b]0;t[b].png"


def test_visualize_prints_brackets_and_escapes_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status("visualize", IMAGE, *MODEL, "--checkpoint", "a.pt", "--out", "x[/red]y",
                  "--logdir", "sweep[lr=0.1]") == 0  # fmt: skip
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert [line.split("  ")[0] for line in printed.out.splitlines() if "parts." in line] == [
        *LAYERS
    ]
    assert r"cat\x1b]0;t[b].png" in printed.out
    assert "x[/red]y/parts.up__2_.png" in printed.out
    assert "serve 'sweep[lr=0.1]'" in printed.out
    assert r"1 unexpected: more\x1b[31m[/b]" in printed.err


def test_a_list_of_layers_shows_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("visualize", *MODEL, "--list") == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert all(name in printed for name in LAYERS)


def test_patches_prints_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("patches", IMAGE, *MODEL, "--weights", "none", "--out", "x[/red]y") == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert all(name in printed for name in LAYERS)
    assert "x[/red]y/" in printed


def test_diff_prints_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("diff", "a.pt", "b.pt", *MODEL, IMAGE) == 1
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert all(name in printed.out for name in LAYERS)
    assert r"first difference: `parts.a\x1b[2Jb\nc`" in printed.out
    assert r"compared on cat\x1b]0;t[b].png" in printed.err


def test_check_prints_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    status("visualize", IMAGE, *MODEL, "--weights", "none", "--logdir", "sweep[lr=0.1]\x1b[2J")
    capsys.readouterr()
    assert status("check", "sweep[lr=0.1]\x1b[2J") in (0, 1)
    assert capsys.readouterr().out.splitlines()[0] == r"sweep[lr=0.1]\x1b[2J"


def test_an_error_escapes_the_names_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("check", "no\x1b[2Jwhere[/b]") == 2
    assert r"no\x1b[2Jwhere[/b]: no such directory" in capsys.readouterr().err


def test_the_results_in_python_print_the_same_names() -> None:
    net = nn.Sequential()
    net.add_module("up[/2]", nn.Conv2d(3, 4, 3))
    net.add_module("\x1b[2J", nn.Conv2d(4, 4, 3))
    images = torch.rand(1, 3, 16, 16)
    other = nn.Sequential()
    other.add_module("up[/2]", nn.Conv2d(3, 4, 3))
    other.add_module("\x1b[2J", nn.Conv2d(4, 4, 3))
    for shown in (
        repr(fmapboard.visualize(net, images, out="maps")),
        repr(fmapboard.patches(net, images)),
        repr(fmapboard.layers(net)),
        repr(fmapboard.diff(net, other, images)),
    ):
        assert "up[/2]" in shown
        assert r"\x1b[2J" in shown
        assert "\x1b" not in shown


def test_a_log_message_escapes_the_names_in_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fmapboard"):
        log.warning("%s of %d", "layer\x1b[2J", 3)
        log.warning("\x1b[2J in the text")
    assert [record.getMessage() for record in caplog.records] == [
        r"fmapboard: layer\x1b[2J of 3", r"fmapboard: \x1b[2J in the text",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("é [b] 猫\t\n", "é [b] 猫\t\n"),
        ("\x9b31m\x7f\r", r"\x9b31m\x7f\r"),
        ("gnp.\u202etac", r"gnp.\u202etac"),
        ("\udcff\u2028", r"\udcff\u2028"),
    ],
)
def test_what_is_escaped(name: str, shown: str) -> None:
    assert escaped(name) == shown
