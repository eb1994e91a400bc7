"""The commands are completed in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from installed_commands import BIN

from fmapboard.cli.main import run, shell_in

COMPLETE = """
eval "$(fmapboard completion bash)"
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
             "visualize pho", "fmapboard compl"]  # fmt: skip
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
        "--colormap", "dirnames", "", "default", "", "completion",
    ]  # fmt: skip


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_for_both_commands(
    capsys: pytest.CaptureFixture[str], shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    with pytest.raises(SystemExit):
        run(["completion"])
    out = capsys.readouterr().out
    assert f"_FMAPBOARD_COMPLETE={shell}_complete" in out
    assert f"_VISUALIZE_COMPLETE={shell}_complete" in out


def test_an_unknown_shell_is_refused_with_what_to_type() -> None:
    with pytest.raises(click.UsageError, match=r"shell \(tcsh\) is none of bash.*completion bash"):
        shell_in({"SHELL": "/bin/tcsh"})
