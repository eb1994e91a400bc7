"""The installed commands, each run in a process of its own with one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def environment(**variables: str) -> dict[str, str]:
    """This process's environment with one OpenMP thread and these variables."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


def run(tool: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as a user would; it finds no downloaded weights."""
    return subprocess.run(
        [BIN / tool, *map(str, arguments)],
        cwd=cwd,
        env=environment(TORCH_HOME=str(cwd / "torch-home")),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
