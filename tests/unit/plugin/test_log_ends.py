"""While TensorBoard is still reading a log, the tab's answers say how far it goes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from event_files import event_files
from tab_client import Tab, open_tab
from two_layer_runs import log_steps

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin import log_ends
from fmapboard.plugin.log_ends import LogEnds
from fmapboard.plugin.log_scan import given_logdirs
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files

TAG = "fmapboard_overview"


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes]:
    """A log directory whose run ends within step 20, and the missing end of its file."""
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    log_steps(tmp_path / "run")
    (file,) = event_files(tmp_path)
    content = file.read_bytes()
    within = content.rindex(TAG.encode())
    file.write_bytes(content[:within])
    return file, content[within:]


def unread_of(tab: Tab) -> list[int | None]:
    return [tab.ask(f"data/{route}", run="run")["unread"] for route in ("layers", "findings")]


def test_steps_in_the_file_that_tensorboard_has_not_read_are_told(
    cut: tuple[Path, bytes], tmp_path: Path
) -> None:
    file, end = cut
    tab = open_tab(tmp_path)
    assert unread_of(tab) == [None, None]  # the last record is not complete
    assert tab.ask("data/findings", run="run")["steps"] == 2
    with file.open("ab") as opened:
        opened.write(end)
    assert unread_of(tab) == [20, 20]
    assert unread_of(open_tab(tmp_path)) == [None, None]


def test_a_record_of_the_last_seconds_may_be_unread(
    cut: tuple[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, end = cut
    tab = open_tab(tmp_path)
    with file.open("ab") as opened:
        opened.write(end)
    monkeypatch.setattr(log_ends, "_LAG", 3600.0)
    assert unread_of(tab) == [None, None]


def test_only_records_of_the_series_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    log_steps(tmp_path / "run")
    ends = LogEnds([("", str(tmp_path))])
    assert ends.unread("run", TAG, 0.0) == 20
    assert ends.unread("run", "gan." + TAG, 0.0) is None
    log_steps(tmp_path / "long", names=["g" * 200])
    assert ends.unread("long", TAG, 0.0) is None
    assert ends.unread("long", "g" * 200 + "." + TAG, 0.0) == 20
    assert LogEnds([("", "gs://bucket")]).unread("run", TAG, 0.0) is None
    assert LogEnds([("", str(tmp_path / "none"))]).unread("run", TAG, 0.0) is None


def test_runs_of_logdir_spec_begin_with_the_name_of_their_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    for run in ("a", "b/deep", "c/deep"):
        log_steps(tmp_path / run)
    spec = f"one:{tmp_path / 'a'},two:{tmp_path / 'b'},{tmp_path / 'c'}"
    ends = LogEnds(given_logdirs(SimpleNamespace(logdir="", logdir_spec=spec)))
    found = {run: ends.unread(run, TAG, 0.0) for run in ("one", "one/.", "two/deep", "deep", "two")}
    assert found == {"one": 20, "one/.": 20, "two/deep": 20, "deep": 20, "two": None}
    twice = LogEnds([("", str(tmp_path / "b")), ("", str(tmp_path / "c"))])
    assert twice.unread("deep", TAG, 0.0) is None


def test_a_pipe_among_the_event_files_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    log_steps(tmp_path / "run")
    os.mkfifo(tmp_path / "run" / "events.out.tfevents.0")
    assert LogEnds([("", str(tmp_path))]).unread("run", TAG, 0.0) == 20


def test_a_replaced_or_damaged_file_is_read_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    log_steps(tmp_path / "run")
    (file,) = event_files(tmp_path)
    ends = LogEnds([("", str(tmp_path))])
    content = file.read_bytes()
    assert ends.unread("run", TAG, 0.0) == 20
    file.write_bytes(content[: content.rindex(TAG.encode())])
    assert ends.unread("run", TAG, 0.0) == 10
    file.write_bytes(b"\xff" * 200)
    assert ends.unread("run", TAG, 0.0) is None


def test_a_file_that_was_forgotten_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ends, "_LAG", 0.0)
    monkeypatch.setattr(log_ends, "_REMEMBERED", 1)
    log_steps(tmp_path / "a")
    log_steps(tmp_path / "b", steps=[0, 30])
    ends = LogEnds([("", str(tmp_path))])
    for _ in range(2):
        assert [ends.unread(run, TAG, 0.0) for run in ("a", "b")] == [20, 30]
    assert ends._files.held < 5000  # of one file


def test_a_directory_with_files_that_are_not_read_yet_is_not_called_empty(tmp_path: Path) -> None:
    tab = open_tab(tmp_path)
    assert tab.ask("data/runs")["is_unread"] is False
    log_steps(tmp_path / "run")
    assert tab.ask("data/runs")["is_unread"] is True
    assert open_tab(tmp_path).ask("data/runs")["is_unread"] is False


def test_blobs_are_read_from_the_file_where_many_of_an_event_are_missing(tmp_path: Path) -> None:
    log_steps(tmp_path / "run")
    files, ends = Files({"run": EventLog(tmp_path / "run")}), LogEnds([("", str(tmp_path))])
    series = files.points(PLUGIN_NAME, "run", ["fmapboard/0", "fmapboard/1"])
    asked = [(points[at], i) for points in series.values() for at in (0, -1) for i in (0, 1)]
    expected = files.blobs(asked)

    def filled(found: list[bytes | None]) -> list[bytes | None]:
        ends.fill(found, asked)
        return found

    assert filled([None] * 8) == expected
    assert None not in expected
    known = [None, None, b"known", None] * 2  # of one step all four are missing, of one two
    assert filled(known) == [*expected[:2], b"known", None, *expected[4:6], b"known", None]
    (file,) = event_files(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"fmapboard/", b"fmapboarD/"))
    assert filled([None] * 8) == [None] * 8  # the file was replaced
