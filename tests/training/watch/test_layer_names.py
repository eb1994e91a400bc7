"""Layer names that file systems or terminals cannot represent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from event_files import event_files
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn

import fmapboard

HALF = "x\ud800y"
ESCAPED = "x\\ud800y"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
PROGRAM = """
from pathlib import Path
import torch
from torch import nn
import fmapboard
from fmapboard.cli.main import run_visualize
from fmapboard.writers.folder import FolderWriter

def net():
    model = nn.Sequential()
    model.add_module("\\xe9", nn.Conv2d(3, 2, 1))
    return model

if __name__ == "__main__":
    model = net().eval()
    with fmapboard.watch(model, writer=FolderWriter(Path("maps")), kernels=False) as board:
        board.begin_step(0, training=False)
        model(torch.rand(1, 3, 4, 4))
        board.end_step()
    run_visualize(["--model", "program:net", "--weights", "none", "--out", "drawn"])
"""


def test_a_layer_name_with_a_lone_surrogate_is_logged_under_its_escape_sequence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential()
    model.add_module(HALF, nn.Conv2d(1, 2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path, every=1, optimizer=optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.rand(1, 1, 4, 4)).sum().backward()
            optimizer.step()
    events = [
        event for path in event_files(tmp_path) for event in EventFileLoader(str(path)).Load()
    ]
    tags = {value.tag for event in events for value in event.summary.value}
    assert {
        f"feature_maps_2x1x1x1/{ESCAPED}", f"fmapboard/{ESCAPED}", f"weights/{ESCAPED}.weight",
        f"gradient_norm/{ESCAPED}.bias",
    } <= tags  # fmt: skip
    assert caplog.records == []


def test_a_model_name_with_a_lone_surrogate_is_refused_at_once() -> None:
    said = r"name='\\ud800': expected a non-empty string without '/' or lone surrogates"
    with pytest.raises(fmapboard.ConfigurationError, match=said):
        fmapboard.watch(nn.Conv2d(1, 1, 1), name="\ud800")


def test_a_layer_called_é_is_written_to_files_and_printed_in_the_c_locale(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env={**os.environ, **C_LOCALE},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert [path.name for path in (tmp_path / "maps").glob("*.png")] != []
    assert "\\xe9" in done.stdout
    drawn = {path.name for path in (tmp_path / "drawn").glob("*.png")}
    assert drawn == {"_.png", "network_input_sample_0.png"}
