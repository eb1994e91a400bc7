"""One rule for all commands: 2 for bad usage and unreadable input, 1 for a job that failed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import torch
from PIL import Image
from torch import nn

from fmapboard.cli.main import fmapboard as group
from fmapboard.cli.main import run

NETS = """
from torch import nn

def fine():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

class Raising(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        raise ValueError("not today")
"""
FINE, RAISING = ["--model", "exit_nets:fine"], ["--model", "exit_nets:Raising"]
MISSING = {
    "visualize": ["nowhere.png", *FINE],
    "visualize --checkpoint": ["cat.png", *FINE, "--checkpoint", "nowhere.pt"],
    "visualize --weights": ["cat.png", *FINE, "--weights", "nowhere.pt"],
    "visualize --input": ["cat.png", *FINE, "--input", "x=nowhere.pt"],
    "patches": ["nowhere.png", *FINE],
    "patches --checkpoint": ["cat.png", *FINE, "--checkpoint", "nowhere.pt"],
    "diff": ["mine.pt", "mine.pt", "nowhere.png", *FINE],
    "diff of checkpoints": ["mine.pt", "nowhere.pt", "cat.png", *FINE],
    "check": ["nowhere"],
    "why": ["nowhere"],
    "report": ["nowhere"],
    "serve": ["nowhere", "--no-open"],
    "run": ["nowhere.py"],
}
UNREADABLE = {
    "visualize": ["broken.png", *FINE],
    "visualize of a folder without images": ["empty", *FINE],
    "visualize --checkpoint": ["cat.png", *FINE, "--checkpoint", "broken.png"],
    "visualize of another network's checkpoint": ["cat.png", *FINE, "--checkpoint", "other.pt"],
    "patches": ["broken.png", *FINE],
    "patches of a folder without images": ["empty", *FINE],
    "patches --checkpoint": ["cat.png", *FINE, "--checkpoint", "broken.png"],
    "diff": ["mine.pt", "mine.pt", "broken.png", *FINE],
    "diff of checkpoints": ["mine.pt", "broken.png", "cat.png", *FINE],
    "check": ["empty"],
    "why": ["empty"],
    "check of a file": ["cat.png"],
    "report": ["empty"],
    "report of a file": ["cat.png"],
}
UNWRITABLE = f"{'x' * 300}/maps"
"""A folder that no system can create: its name is too long."""
FAILING = {
    "visualize": (1, ["cat.png", *RAISING, "--out", "maps"]),
    "visualize --out": (1, ["cat.png", *FINE, "--out", UNWRITABLE]),
    "patches": (1, ["cat.png", *RAISING, "--out", "crops"]),
    "patches --out": (1, ["cat.png", *FINE, "--out", UNWRITABLE]),
    "diff --out": (2, ["mine.pt", "mine.pt", "cat.png", *FINE, "--out", UNWRITABLE]),
    "diff": (2, ["raising.pt", "raising.pt", "cat.png", *RAISING]),
}
WITHOUT_INPUT = {"demo", "docs", "doctor"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("exit_nets.py").write_text(NETS)
    Image.new("RGB", (24, 24)).save("cat.png")
    Path("broken.png").write_bytes(Path("cat.png").read_bytes()[:30])
    Path("empty").mkdir()
    torch.save({f"conv.{n}": p for n, p in nn.Conv2d(3, 4, 3).named_parameters()}, "raising.pt")
    torch.save({"0.weight": torch.zeros(4, 3, 3, 3), "0.bias": torch.zeros(4)}, "mine.pt")
    torch.save({"elsewhere": torch.zeros(4)}, "other.pt")


def status(capsys: pytest.CaptureFixture[str], case: str, arguments: list[str]) -> int:
    """The exit status; the error must be one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run([case.split()[0], *arguments])
    lines = [one for one in capsys.readouterr().err.splitlines() if one.startswith("fmapboard: ")]
    assert len(lines) == 1, lines
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_file_is_exit_code_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(capsys, case, MISSING[case]) == 2


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_input_is_exit_code_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(capsys, case, UNREADABLE[case]) == 2


@pytest.mark.parametrize("case", FAILING)
def test_a_failed_job_is_exit_code_1_unless_that_is_a_finding(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, arguments = FAILING[case]
    assert status(capsys, case, arguments) == code


@pytest.mark.parametrize("command", [*group.commands])
def test_an_unknown_option_is_exit_code_2(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(capsys, command, ["--nonsense"]) == 2


def test_every_command_that_reads_anything_has_a_case() -> None:
    assert isinstance(group, click.Group)
    tested = {case.split()[0] for case in MISSING}
    assert tested | WITHOUT_INPUT == group.commands.keys()


def test_an_error_of_any_type_is_no_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise PermissionError(13, "not permitted", str(path))

    monkeypatch.setattr("fmapboard.cli.commands.check.read_runs", broken)
    assert status(capsys, "check", ["empty"]) == 2


@pytest.mark.parametrize("command", ["visualize", "patches"])
def test_numbers_of_an_option_with_spaces_between_are_explained(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run([command, "cat.png", *FINE, "--mean", "0.485", "0.456", "0.406"])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "'0.456'; write several numbers for one option with commas: --mean 0.485,0.4" in error
