"""Event files where the system has neither locks of POSIX nor ``writev``, as on Windows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from event_files import event_files, step_of, steps_in, write

from fmapboard.errors import WriteError
from fmapboard.writers import event_file
from fmapboard.writers.folder import store
from fmapboard.writers.tensorboard import TensorBoardWriter


@pytest.fixture(autouse=True)
def without_posix(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Windows lacks."""
    monkeypatch.setattr(event_file, "fcntl", None)
    monkeypatch.delattr(os, "writev", raising=False)


def test_steps_are_written_and_a_run_is_resumed(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2)
    write(tmp_path, 2, 3, start_step=2)
    first, second = event_files(tmp_path)
    assert set(steps_in(first)) == {0, 1, 2}
    assert set(steps_in(second)) == {2, 3}


def test_files_that_are_begun_in_one_tick_of_the_clock_have_names_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    for step in range(12):
        write(tmp_path, step, start_step=step)
    files = event_files(tmp_path)
    assert [steps_in(file) for file in files] == [[step] for step in range(12)]


def test_two_writers_of_one_process_still_go_apart(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path, prefix="")
    other = TensorBoardWriter(tmp_path, prefix="")
    for each in (writer, other):
        each.write(step_of(0))
        each.close()
    places = [path.parent.relative_to(tmp_path).as_posix() for path in event_files(tmp_path)]
    assert places == [".", "fmapboard_2"]


def test_a_picture_that_a_viewer_has_open_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "conv.png"
    path.write_bytes(b"before")

    def refused(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Access is denied", str(self), 5, str(target))

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(WriteError, match=r"conv\.png"):
        store(path, b"after")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("conv.png", b"before")
    ]
