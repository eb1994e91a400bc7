"""Which directories of a log directory are runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fmapboard.runs.find import run_directories


def run_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.1.host").touch()
    return folder


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    run_in(tmp_path / "logs" / "b" / "inner")
    (tmp_path / "logs" / "a").mkdir()
    return tmp_path / "logs"


def test_a_link_to_a_run_elsewhere_is_a_run(tmp_path: Path, logdir: Path) -> None:
    (logdir / "a_run").symlink_to(run_in(tmp_path / "elsewhere"))
    assert run_directories(logdir) == [logdir / "a_run", logdir / "b" / "inner"]
    (tmp_path / "link").symlink_to(logdir)
    assert run_directories(tmp_path / "link" / "b") == [tmp_path / "link" / "b" / "inner"]


def test_a_link_to_a_directory_of_runs_leads_to_them(tmp_path: Path, logdir: Path) -> None:
    run_in(tmp_path / "elsewhere" / "deep" / "run")
    (logdir / "a" / "shared").symlink_to(tmp_path / "elsewhere")
    assert run_directories(logdir / "a") == [logdir / "a" / "shared" / "deep" / "run"]


def test_a_run_is_listed_once_without_the_link_to_it(logdir: Path) -> None:
    (logdir / "a" / "latest").symlink_to(logdir / "b" / "inner")
    (logdir / "a" / "up").symlink_to(logdir)  # a circle
    (logdir / "z").symlink_to(logdir / "nowhere")
    for name in ("loop", "events.out.tfevents.2.host"):
        (logdir / "b" / "inner" / name).symlink_to(logdir / "b" / "inner" / name)
    assert run_directories(logdir) == [logdir / "b" / "inner"]


def test_event_files_that_are_links_count_and_broken_ones_do_not(tmp_path: Path) -> None:
    target = run_in(tmp_path / "target")
    for name, file in (("good", "events.out.tfevents.1.host"), ("broken", "gone")):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "events.out.tfevents.2.host").symlink_to(target / file)
    assert run_directories(tmp_path / "logs") == [tmp_path / "logs" / "good"]


def test_runs_may_be_nested_more_deeply_than_python_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
        run_in(Path("run"))
        (found,) = run_directories(tmp_path)
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # pytest could not remove it
    assert found.relative_to(tmp_path) == Path("d/" * 1100 + "run")
