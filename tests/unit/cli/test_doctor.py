"""`fmapboard doctor` finds the TensorBoard that would run, and problems of its installation."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from local_servers import take_pkg_resources

from fmapboard.cli.commands import doctor, doctor_probe
from fmapboard.cli.commands.doctor import examine, interpreter_of
from fmapboard.cli.commands.doctor_probe import inspect
from fmapboard.cli.main import run

FOUND: dict[str, Any] = {
    "python": "3.12.1", "executable": "/py", "has_entry": True, "server": None, "broken": [],
    "tab": None, "running": [],
    "versions": {"tensorboard": "2.21.0", "tensorboard-data-server": "0.7.2",
                 "fmapboard": "0.1.0", "torch": None},
}  # fmt: skip


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def python_that_says(path: Path, found: dict[str, Any]) -> Path:
    """A fake interpreter that prints these findings."""
    return script(path, "#!/bin/sh", f"echo '{json.dumps(found)}'")


def command_of(folder: Path, python: Path | str) -> None:
    script(folder / "tensorboard", f"#!{python}", "import tensorboard")


def test_this_installation_has_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command_of(tmp_path, sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        run(["doctor"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"`tensorboard` ({tmp_path / 'tensorboard'}) and `fmapboard serve`\n")
    assert "  ok       the Feature maps tab is installed\n" in out
    assert "PROBLEM" not in out


def test_without_the_command_on_path_doctor_prints_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    doctor.run_doctor()
    out = capsys.readouterr().out
    assert "note     not on PATH; start it with: " in out
    assert "serve LOGDIR" in out


def test_a_tensorboard_of_another_python_without_fmapboard_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without = {**FOUND, "versions": {**FOUND["versions"], "fmapboard": None}}
    other = python_that_says(tmp_path / "python", without)
    command_of(tmp_path, other)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemExit) as ended:
        run(["doctor"])
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert said.err == "fmapboard: 1 problem, see above\n"
    assert (
        "PROBLEM  fmapboard is not installed in this Python, so the tab is missing; "
        f"run: {other} -m pip install {doctor.source()}\n" in said.out
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"versions": {"tensorboard": None, "fmapboard": "0.1.0"}}, "TensorBoard is not installed"),
        ({"has_entry": False}, "without its entry point; run: "),
        ({"tab": "ImportError: no"}, "the tab does not load: ImportError: no"),
        (
            {"server": {"error": "ModuleNotFoundError: …", "missing": "pkg_resources"}},
            "run: {python} -m pip install 'setuptools<82', or: "
            "{python} -m pip install --upgrade tensorboard",
        ),
        (
            {"server": {"error": "ImportError: no", "missing": None}},
            "TensorBoard does not start: ImportError: no; "
            "run: {python} -m pip install --force-reinstall tensorboard",
        ),
        ({"broken": ["x (y:Z): KeyError: 1"]}, "stops TensorBoard from starting: x (y:Z)"),
    ],
)
def test_whatever_keeps_the_tab_from_loading_is_a_problem(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    python = python_that_says(tmp_path / "python", {**FOUND, **changes})
    findings = examine(str(python))
    problems = [finding.text for finding in findings if finding.weight == "PROBLEM"]
    assert [said.replace("{python}", str(python)) in problem for problem in problems] == [True]
    assert not [finding for finding in findings if "tab is installed" in finding.text]


def test_anything_else_worth_knowing_is_a_note(tmp_path: Path) -> None:
    versions = {**FOUND["versions"], "fmapboard": "0.0.1", "tensorboard-data-server": None}
    running = [{"port": 6006, "started": 1.7e9, "logdir": "runs"}]
    found = {**FOUND, "versions": versions, "running": running}
    findings = examine(str(python_that_says(tmp_path / "python", found)))
    notes = [finding.text for finding in findings if finding.weight == "note"]
    assert [note.split(" ")[0] for note in notes] == ["fmapboard", "no", "TensorBoard"]
    assert "port 6006 since 2023-11-1" in notes[2]


def test_an_interpreter_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    dumb = script(tmp_path / "python", "#!/bin/sh", "exit 3")
    (finding,) = examine(str(dumb))
    assert "could not be run" in finding.text
    assert finding.weight == "PROBLEM"


def test_the_interpreter_of_a_command_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = script(tmp_path / "python7", "#!/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    cases = {
        "direct": ([f"#!{python}"], str(python)),
        "env": (["#!/usr/bin/env python7"], str(python)),
        "long path": (["#!/bin/sh", f'\'\'\'exec\' "{python}" "$0" "$@"', "' '''"], str(python)),
        "shell script": (["#!/bin/sh", "echo"], None),
        "no script": (["\x7fELF"], None),
        "zero bytes": ([f"#!{python}\0x"], None),
        "gone": ([f"#!{tmp_path}/nowhere"], None),
    }
    for name, (lines, expected) in cases.items():
        assert interpreter_of(script(tmp_path / name, *lines)) == expected, name
    windows = tmp_path / "tensorboard.exe"
    windows.write_bytes(b"MZ")
    assert interpreter_of(windows) is None
    (tmp_path / "python.exe").write_bytes(b"MZ")
    assert interpreter_of(windows) == str(tmp_path / "python.exe")


def test_the_probe_reports_versions_and_that_the_tab_loads() -> None:
    found = inspect()
    assert found["versions"]["fmapboard"] == "0.1.0"
    assert found["versions"]["tensorboard"].startswith("2.")
    assert (found["has_entry"], found["server"]) == (True, None)
    assert (found["tab"], found["broken"]) == (None, [])
    assert os.path.samefile(found["executable"], sys.executable)


def test_a_pipe_named_as_the_note_of_a_server_does_not_stop_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(doctor_probe, "_LOOKING", 0.1)
    note = tmp_path / ".tensorboard-info" / "pid-1.info"
    note.parent.mkdir()
    os.mkfifo(note)
    assert inspect()["running"] == []
    os.close(os.open(note, os.O_WRONLY))  # ends the thread that reads it


def test_the_probe_reports_why_the_tab_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fmapboard.plugin.plugin", None)
    assert inspect()["tab"].startswith("ModuleNotFoundError: ")


def test_the_probe_reports_why_the_server_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_pkg_resources(tmp_path, monkeypatch)
    assert inspect()["server"] == {
        "error": "ModuleNotFoundError: No module named 'pkg_resources'",
        "missing": "pkg_resources",
    }


@pytest.mark.parametrize(
    ("noted", "text"),
    [
        (None, "PATH_TO_FMAPBOARD"),
        ({"url": "file:///home/me/my%20code", "dir_info": {}}, "'/home/me/my code'"),
        ({"url": "https://host/a.whl", "archive_info": {}}, "https://host/a.whl"),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "git+https://host/a.git@1f",
        ),
    ],
)
def test_the_suggested_source_is_that_of_this_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: Any, text: str
) -> None:
    folder = tmp_path / "fmapboard-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: fmapboard\nVersion: 0.1.0\n")
    if noted is not None:
        (folder / "direct_url.json").write_text(json.dumps(noted))
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.source() == text
