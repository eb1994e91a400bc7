"""How the program is started: `fmapboard`, `visualize`, and ``python -m fmapboard``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import warm_python

from fmapboard import __version__

BIN = Path(sys.executable).parent
FMAPBOARD = [str(BIN / "fmapboard")]
VISUALIZE = [str(BIN / "visualize")]
MODULE = [sys.executable, "-m", "fmapboard"]


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("program", [FMAPBOARD, MODULE], ids=["command", "module"])
def test_without_arguments_the_help_is_printed(program: list[str]) -> None:
    done = run(*program)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "fmapboard demo"
    assert lines[2].startswith("Usage: fmapboard [OPTIONS] ")
    for command in ("demo", "doctor", "serve", "visualize"):
        assert any(line.startswith(f"  {command} ") for line in lines)
    assert done.stdout == run(*program, "--help").stdout


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (FMAPBOARD, f"fmapboard, version {__version__}"),
        (MODULE, f"fmapboard, version {__version__}"),
        (VISUALIZE, f"visualize (fmapboard), version {__version__}"),
        ([*FMAPBOARD, "visualize"], f"visualize (fmapboard), version {__version__}"),
    ],
    ids=["fmapboard", "python -m fmapboard", "visualize", "fmapboard visualize"],
)
def test_name_and_version_are_printed(command: list[str], line: str) -> None:
    done = run(*command, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{line}\n", "")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_do_not_import_torch(option: str) -> None:
    done = run(sys.executable, "-X", "importtime", "-m", "fmapboard", option)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "fmapboard.cli.main" in imported
    assert imported & {"torch", "numpy", "tensorboard", "PIL"} == set()


def test_an_error_of_the_module_is_one_line_with_the_commands_exit_code(tmp_path: Path) -> None:
    done = run(*MODULE, "serve", "nowhere", cwd=tmp_path)
    said = "no such directory: nowhere; give the log_dir of fmapboard.watch, or one above it"
    assert (done.returncode, done.stderr) == (2, f"fmapboard: {said}\n")
    done = run(*MODULE, "serv", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_the_module_names_itself_in_the_commands_to_paste(tmp_path: Path) -> None:
    module = "import runpy; runpy.run_module('fmapboard', run_name='__main__', alter_sys=True)"
    words = ("visualize", "--layers", "conv4", "--logdir", "runs/x")
    done = warm_python.run(module, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{sys.executable} -m fmapboard serve runs/x" in done.stdout
