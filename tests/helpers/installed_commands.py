"""The commands as a user types them: called in this process, or installed, in one of their own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fmapboard.cli import main

BIN = Path(sys.executable).parent
CALLED = {"fmapboard": main.run, "visualize": main.run_visualize}


def environment(**variables: str) -> dict[str, str]:
    """This process's environment with one OpenMP thread and these variables."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


def run(tool: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call a command in this process, which has imported torch; it finds no downloaded weights."""
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        patched.chdir(cwd)
        patched.setenv("TORCH_HOME", str(cwd / "torch-home"))
        patched.setattr(sys, "path", [*sys.path])
        with pytest.raises(SystemExit) as ended:
            CALLED[tool]([str(argument) for argument in arguments])
    status = ended.value.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(tool, status, out.getvalue(), errors.getvalue())


def run_installed(tool: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run an installed command to its end; it finds no downloaded weights."""
    return subprocess.run(
        [BIN / tool, *map(str, arguments)],
        cwd=cwd,
        env=environment(TORCH_HOME=str(cwd / "torch-home")),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
