"""The commands are completed in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from installed_commands import BIN

COMPLETE = """
eval "$(_VISUALIZE_COMPLETE=bash_source visualize)"
eval "$(_FMAPBOARD_COMPLETE=bash_source fmapboard)"
compopt() { echo "$2"; }  # which kind of file names bash would complete
for line in "$@"; do
    read -ra COMP_WORDS <<< "$line"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "_${COMP_WORDS[0]}_completion" "${COMP_WORDS[0]}"
    echo "${COMPREPLY[@]}"
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_options_values_and_files(tmp_path: Path) -> None:
    lines = ["visualize --colorm", "visualize --out ma",
             "visualize pho", "fmapboard rep"]  # fmt: skip
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", *lines],
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "--colormap", "dirnames", "", "default", "", "report",
    ]  # fmt: skip
