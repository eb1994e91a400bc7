"""Checkpoint files are read in any format, without running their code; other files are refused."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_states import network, saved, state
from held_work import LIMIT
from pickles import CreatesFolder
from safetensors.torch import save_file

from fmapboard.errors import CheckpointError, MissingExtra
from fmapboard.imaging.models import weight_files
from fmapboard.imaging.models.checkpoints import load_checkpoint, read_state_dict

# -- fitting -------------------------------------------------------------------------------------


def test_safetensors_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file(state(), path)
    assert str(load_checkpoint(network(), path)) == "7 of 7 tensors loaded"


def test_without_safetensors_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    save_file(state(), path)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtra, match=r"Run: pip install safetensors$"):
        read_state_dict(path, (), key=None)


@pytest.mark.parametrize("zipped", [True, False])
def test_both_formats_of_torch_are_read(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "a.pt"
    torch.save(state(), path, _use_new_zipfile_serialization=zipped)
    assert read_state_dict(path, (), key=None).tensors["0.bias"].tolist() == [0.5, 0.5, 0.5, 0.5]


# -- files that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_checkpoint_does_not_run(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "evil.pt"
    content = {"state_dict": state(), "extra": CreatesFolder(tmp_path / "owned")}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError) as caught:
        read_state_dict(path, (), key=None)
    assert not (tmp_path / "owned").exists()
    assert str(caught.value) == (
        f"'{path}' is not a checkpoint, is damaged, or holds objects whose loading could run code "
        f"(unsupported GLOBAL {os.mkdir.__module__}.mkdir); save weights with "
        "torch.save(model.state_dict(), file)"
    )


class Calls:
    """Calls a function of any library when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return shutil.rmtree, ("a folder",)


def test_a_function_that_the_file_names_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved({"model": state(), "extra": Calls()}, tmp_path / "a.pt")
    (tmp_path / "a folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_checkpoint(network(), path).matched == 7
    assert (tmp_path / "a folder").exists()


def test_objects_in_a_file_of_torch_before_1_6_are_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    content = {"model": state(), "args": argparse.Namespace(lr=0.1)}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    with pytest.raises(CheckpointError, match=r"Unsupported global: GLOBAL argparse\.Namespace\)"):
        read_state_dict(path, (), key=None)


@pytest.mark.each_once
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_checkpoint_is_refused_in_one_line(
    tmp_path: Path, zipped: bool, kept: float
) -> None:
    path = tmp_path / "cut.pt"
    torch.save({"0.weight": torch.ones(64, 3, 7, 7)}, path, _use_new_zipfile_serialization=zipped)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(CheckpointError, match=r"cut\.pt' is not a checkpoint, is damaged") as e:
        read_state_dict(path, (), key=None)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


def test_truncated_safetensors_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    save_file(state(), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match=r"cut\.safetensors' is not a checkpoint") as caught:
        read_state_dict(path, (), key=None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"hello, I am a text", b"\x89PNG\r\n\x1a\n", bytes(range(256))]
)
def test_other_files_are_not_checkpoints(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.pt' is not a checkpoint") as caught:
        read_state_dict(path, (), key=None)
    assert "\n" not in str(caught.value)


def test_torchs_page_about_a_file_that_is_not_a_pickle_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"\x80\x02\xff")
    with pytest.raises(CheckpointError, match=r"run code \(Unsupported operand 255\); save we"):
        read_state_dict(tmp_path / "a.pt", (), key=None)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"not a regular file; download or copy it aga"):
        read_state_dict(tmp_path / "a.pt", (), key=None)


def test_a_missing_file_is_reported_with_similar_names(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").touch()
    with pytest.raises(
        CheckpointError, match=r"no such checkpoint: .*lst\.ckpt'; closest: last\.ck"
    ):
        read_state_dict(tmp_path / "lst.ckpt", (), key=None)


def test_a_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a folder, not a checkpoint file"):
        read_state_dict(tmp_path, (), key=None)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (torch.ones(3), "holds a Tensor, not a state dict"),
        ([torch.ones(3)], "holds a list, not a state dict"),
        ({"epoch": 3}, r"no named tensors in '.*'; its keys: epoch; save weights with torch"),
        ({}, "no named tensors in "),
    ],
)
def test_a_file_without_a_state_dict_is_refused(tmp_path: Path, content: Any, text: str) -> None:
    with pytest.raises(CheckpointError, match=text):
        read_state_dict(saved(content, tmp_path / "a.pt"), (), key=None)


# -- files that load for long --------------------------------------------------------------------


def test_a_file_that_is_still_loading_is_named_on_stderr_with_its_control_characters_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = threading.Event()
    monkeypatch.setattr(weight_files, "SECONDS", 0.0)
    monkeypatch.setattr(
        weight_files, "print", lambda *a, **b: (print(*a, **b), said.set()), raising=False
    )
    path = saved(state(), tmp_path / "red\x1b[31m.pt")
    monkeypatch.setattr(weight_files, "_read_torch", lambda file: {} if said.wait(LIMIT) else None)
    weight_files.read_file(path)
    name = str(path).replace("\x1b", r"\x1b")
    assert capsys.readouterr().err == f"still loading '{name}' after 0 s; Ctrl-C stops it\n"


def test_a_file_that_loads_in_time_is_not_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weight_files.read_file(saved(state(), tmp_path / "a.pt"))
    assert capsys.readouterr().err == ""
    for thread in threading.enumerate():  # on Windows, pytest-timeout has a timer of its own
        if isinstance(thread, threading.Timer) and "pytest_timeout" not in thread.name:
            thread.join(LIMIT)
            assert not thread.is_alive()
