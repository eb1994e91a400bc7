"""The runs below a directory, read on while they are written, at all of their steps."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from event_files import event_files, step_of, write

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.followed import FollowedRuns
from fmapboard.writers.tensorboard import TensorBoardWriter

KEY = "fmapboard/conv"
PICTURE = "feature_maps_1x1x1x1/conv"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def runs(tmp_path: Path, said: list[str]) -> FollowedRuns:
    """The runs below a directory that is empty at first."""
    logdir = tmp_path / "logs"
    logdir.mkdir()
    return FollowedRuns(logdir, said.append)


def steps_of(runs: FollowedRuns, run: str) -> list[int]:
    runs.list_runs()
    while runs.look():
        pass
    points = runs.points(PLUGIN_NAME, run, [KEY]).get(KEY, [])
    return [point.step for point in points]


def test_a_run_appears_grows_and_is_gone_once_it_is_deleted(
    runs: FollowedRuns, tmp_path: Path
) -> None:
    runs.look()
    assert runs.runs() == {}
    write(tmp_path / "logs" / "a", 0, 1)
    assert steps_of(runs, "a") == [0, 1]
    write(tmp_path / "logs" / "a", 5)
    write(tmp_path / "logs" / "b", 7)
    assert steps_of(runs, "a") == [0, 1, 5]
    assert sorted(runs.runs()) == ["a", "b"]
    (old,) = runs.points(PLUGIN_NAME, "b", [KEY])[KEY]
    shutil.rmtree(tmp_path / "logs" / "b")
    assert steps_of(runs, "a") == [0, 1, 5]
    assert sorted(runs.runs()) == ["a"]
    assert runs.blobs([(old, 0)]) == [None]


def test_every_step_of_a_long_run_is_kept_and_read_in_parts(
    runs: FollowedRuns, tmp_path: Path
) -> None:
    writer = TensorBoardWriter(tmp_path / "logs")
    for number in range(300):
        writer.write(step_of(number, side=32))
    writer.close()
    runs.list_runs()
    assert runs.look()
    (read,) = runs.points("images", ".", [PICTURE]).values()
    assert 0 < len(read) < 300
    assert runs.unread(".", PICTURE, read[-1].wall_time) == 299
    assert steps_of(runs, ".") == list(range(300))
    assert runs.unread(".", PICTURE, read[-1].wall_time) is None


def test_a_record_that_is_half_written_is_read_once_it_is_whole(
    runs: FollowedRuns, tmp_path: Path
) -> None:
    write(tmp_path / "logs" / "a", 0, 1)
    (file,) = event_files(tmp_path)
    whole = file.read_bytes()
    for size in (len(whole) - 300, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert steps_of(runs, "a") == [0]
    file.write_bytes(whole)
    assert steps_of(runs, "a") == [0, 1]


def test_a_file_that_is_replaced_or_cut_is_read_anew(runs: FollowedRuns, tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a", 0, 1, 2)
    assert steps_of(runs, "a") == [0, 1, 2]
    (file,) = event_files(tmp_path)
    write(tmp_path / "other", *range(7, 17))
    (other,) = event_files(tmp_path / "other")
    os.replace(other, file)
    assert steps_of(runs, "a") == list(range(7, 17))
    os.truncate(file, file.stat().st_size // 2)
    assert 0 < len(steps_of(runs, "a")) < 10


def test_links_that_lead_out_of_the_directory_are_left_out_and_said_to_be(
    runs: FollowedRuns, said: list[str], tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    write(logs / "a", 0)
    write(tmp_path / "logs2", 1)  # its path begins as that of the directory
    (file,) = event_files(tmp_path / "logs2")
    (logs / "folder").symlink_to(tmp_path / "logs2")
    (logs / "inside").symlink_to(logs / "a")
    (logs / "b").mkdir()
    (logs / "b" / file.name).symlink_to(file)
    (logs / "up").symlink_to(tmp_path)
    assert steps_of(runs, "a") == [0]
    assert steps_of(runs, "b") == []
    assert "folder" not in runs.runs()
    why = "leads out of the directory that is read"
    assert sorted(said) == [f"left out: {logs / name}: {why}" for name in ("folder", "up")]


def test_a_file_that_becomes_a_link_is_not_read_through_it(
    runs: FollowedRuns, tmp_path: Path
) -> None:
    write(tmp_path / "logs" / "a", 0)
    write(tmp_path / "other", 0)
    assert steps_of(runs, "a") == [0]
    (point,) = runs.points(PLUGIN_NAME, "a", [KEY])[KEY]
    assert runs.blobs([(point, 0)]) != [None]
    (file,) = event_files(tmp_path / "logs")
    (other,) = event_files(tmp_path / "other")
    file.unlink()
    file.symlink_to(other)
    assert runs.blobs([(point, 0)]) == [None]
    assert steps_of(runs, "a") == []


@pytest.mark.parametrize("name", ["pipe", "folder", "unreadable"])
def test_what_is_no_file_is_not_read(name: str, runs: FollowedRuns, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "bad" / "events.out.tfevents.1"
    path.parent.mkdir()
    if name == "pipe":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    else:
        path.symlink_to("/proc/self/mem")
    write(tmp_path / "logs" / "good", 0)
    assert steps_of(runs, "good") == [0]
    assert steps_of(runs, "bad") == []


def test_a_name_that_is_no_text_is_served_with_marks_in_its_place(
    runs: FollowedRuns, tmp_path: Path
) -> None:
    write(tmp_path / "logs" / os.fsdecode(b"a\xffb"), 3)
    assert steps_of(runs, "a\ufffdb") == [3]
