"""The commands are completed in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import torchvision.models
from installed_commands import BIN

from fmapboard.cli.completion import image_models, shell_in
from fmapboard.cli.main import run

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
def test_bash_completes_options_values_models_and_files(tmp_path: Path) -> None:
    lines = ["visualize --colorm", "visualize --model resnet3", "visualize --out ma",
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
        "--colormap", "dirnames", "resnet34", "dirnames", "", "default", "", "completion",
    ]  # fmt: skip


def test_the_completed_models_are_those_for_images_of_torchvision() -> None:
    other = {
        *torchvision.models.list_models(torchvision.models.video),
        *torchvision.models.list_models(torchvision.models.optical_flow),
        *torchvision.models.list_models(torchvision.models.quantization),
    }
    assert set(image_models()) == {"demo", *torchvision.models.list_models()} - other


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
