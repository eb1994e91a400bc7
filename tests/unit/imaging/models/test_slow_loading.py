"""A checkpoint that never finishes loading is named once, and Ctrl-C stops it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from fmapboard.imaging.models import slow_loading
from fmapboard.imaging.models.slow_loading import loading
from fmapboard.imaging.models.weight_files import read_file


def bomb(path: Path, depth: int) -> Path:
    """A checkpoint with a dict whose key is a tuple of 2**depth parts, all the same object."""
    torch.save({"weight": torch.ones(1)}, plain := path.with_name("plain.pt"))
    key = b"K\x01\x85q\x00"
    key += b"".join(b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(depth))
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for info in source.infolist():
            is_pickle = info.filename.endswith("data.pkl")
            data = b"\x80\x02}" + key + b"K\x02s." if is_pickle else source.read(info)
            target.writestr(info.filename, data)
    return path


# If CI runs as a background job of a shell, programs start with SIGINT ignored.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from fmapboard.cli.main import run_visualize
from fmapboard.imaging.models import slow_loading
slow_loading.SECONDS = 0.0
run_visualize(sys.argv[1:])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")
def test_a_checkpoint_that_never_ends_is_named_once_and_stopped_by_an_interrupt(
    tmp_path: Path,
) -> None:
    endless = bomb(tmp_path / "endless.pt", 60)
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--model", "demo", "--checkpoint", str(endless)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    ) as job:  # fmt: skip
        assert job.stderr is not None
        named = job.stderr.readline()
        job.send_signal(signal.SIGINT)
        rest = job.stderr.read()
    assert (job.returncode, rest) == (-signal.SIGINT, "")
    assert named == f"still loading {str(endless)!r} after 0 s; Ctrl-C stops it\n"


def test_a_file_that_is_still_loading_is_named_with_its_control_characters_escaped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def noted(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*command, **options))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(slow_loading, "SECONDS", 0.0)
    monkeypatch.setattr(subprocess, "Popen", noted)
    with loading(Path("red\x1b[31m.pt")):
        started[0].wait()
    said = r"still loading 'red\x1b[31m.pt' after 0 s; Ctrl-C stops it"
    assert capfd.readouterr().err == f"{said}\n"


def test_the_other_process_waits_for_a_minute_and_then_names_the_file_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: started.append(command))
    with loading(Path("a.pt")):
        pass
    (command,) = started
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(sys, "argv", command[command.index("-c") :][:1] + command[-2:])
    exec(command[command.index("-c") + 1], {})
    assert slept == [60.0]
    assert capsys.readouterr().err == "still loading 'a.pt' after 60 s; Ctrl-C stops it\n"


def test_a_file_that_loads_in_time_is_not_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert list(read_file(bomb(tmp_path / "quick.pt", 3)).values()) == [2]
    assert capfd.readouterr().err == ""


def test_an_interrupt_is_pythons_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with contextlib.suppress(ValueError), loading(Path("a.pt")):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
            raise ValueError("damaged")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_of_the_users_is_left_in_place() -> None:
    def own(number: int, frame: object) -> None:
        """Does nothing."""

    before = signal.signal(signal.SIGINT, own)
    try:
        with loading(Path("a.pt")):
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_can_load_too(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(1)}, tmp_path / "a.pt")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(read_file(tmp_path / "a.pt")))
    thread.start()
    thread.join()
    assert found == ["weight"]
    assert slow_loading.SECONDS == 60
