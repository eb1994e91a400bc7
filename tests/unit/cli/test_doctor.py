"""`fmapboard doctor` finds the TensorBoard that would run, and problems of its installation."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from local_servers import take_pkg_resources

from fmapboard.cli.commands import doctor, doctor_probe
from fmapboard.cli.commands.doctor import examine, interpreter_of
from fmapboard.cli.main import run

VERSIONS = {"tensorboard": "2.21.0", "tensorboard-data-server": "0.7.2", "fmapboard": "0.1.0"}


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An installation without problems, to be changed; its versions are those of `VERSIONS`."""
    monkeypatch.setattr(doctor_probe, "_version", VERSIONS.get)
    monkeypatch.setattr(doctor_probe, "_running", list)
    return monkeypatch


def lines(severity: str) -> list[str]:
    """What the probe says of this Python with a severity."""
    said = doctor_probe.examined("0.1.0", "fmapboard-src", "/a b/python")
    return [text for own, text in said if own == severity]


def installed(**changes: str | None) -> Callable[[str], str | None]:
    return {**VERSIONS, **changes}.get


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def python_that_says(path: Path, *said: tuple[str, str]) -> Path:
    """A fake interpreter that prints these lines."""
    return script(path, "#!/bin/sh", f"echo '{json.dumps(said)}'")


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
    other = python_that_says(tmp_path / "python", ("PROBLEM", "fmapboard is not installed"))
    command_of(tmp_path, other)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemExit) as ended:
        run(["doctor"])
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert said.err == "fmapboard: 1 problem, see above\n"
    assert f"`tensorboard` ({tmp_path / 'tensorboard'})\n" in said.out
    assert "  PROBLEM  fmapboard is not installed\n" in said.out


def test_the_probe_says_what_is_installed_and_that_the_tab_is_there(
    healthy: pytest.MonkeyPatch,
) -> None:
    first, last = lines("ok")
    python = f"Python {platform.python_version()} ({sys.executable})"
    assert first == f"{python}, TensorBoard 2.21.0, data server 0.7.2, fmapboard 0.1.0"
    assert last == "the Feature maps tab is installed"
    assert (lines("PROBLEM"), lines("note")) == ([], [])


def test_without_tensorboard_the_probe_says_how_to_install_it(healthy: pytest.MonkeyPatch) -> None:
    healthy.setattr(doctor_probe, "_version", installed(tensorboard=None))
    (problem,) = lines("PROBLEM")
    assert problem == "TensorBoard is not installed; run: '/a b/python' -m pip install tensorboard"


def test_without_fmapboard_the_probe_says_where_to_install_it_from(
    healthy: pytest.MonkeyPatch,
) -> None:
    healthy.setattr(doctor_probe, "_version", installed(fmapboard=None))
    (problem,) = lines("PROBLEM")
    assert problem == (
        "fmapboard is not installed in this Python, so the tab is missing; "
        "run: '/a b/python' -m pip install fmapboard-src"
    )
    assert len(lines("ok")) == 1


def test_an_installation_without_entry_point_is_a_problem(healthy: pytest.MonkeyPatch) -> None:
    healthy.setattr(doctor_probe, "_entry_points", list)
    (problem,) = lines("PROBLEM")
    assert problem.startswith("fmapboard is installed without its entry point; run: ")
    assert problem.endswith("install --force-reinstall --no-deps fmapboard-src")
    assert "the Feature maps tab is installed" not in lines("ok")


def test_a_plugin_that_cannot_be_imported_is_a_problem(healthy: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("x", "nowhere:Z", "tensorboard_plugins")
    every = [*doctor_probe._entry_points(), broken]
    healthy.setattr(doctor_probe, "_entry_points", lambda: every)
    (problem,) = lines("PROBLEM")
    assert problem.startswith(
        "a plugin stops TensorBoard from starting: x (nowhere:Z): ModuleNotFoundError: "
    )


def test_a_tab_that_does_not_load_is_a_problem(healthy: pytest.MonkeyPatch) -> None:
    healthy.setitem(sys.modules, "fmapboard.plugin.plugin", None)
    (problem,) = lines("PROBLEM")
    assert problem.startswith("the tab does not load: ModuleNotFoundError: ")


def test_a_tensorboard_without_pkg_resources_is_a_problem_with_a_cure(
    tmp_path: Path, healthy: pytest.MonkeyPatch
) -> None:
    take_pkg_resources(tmp_path, healthy)
    problem = lines("PROBLEM")[0]
    assert problem.endswith(
        "run: '/a b/python' -m pip install 'setuptools<82', or: "
        "'/a b/python' -m pip install --upgrade tensorboard"
    )


def test_a_server_that_cannot_be_imported_is_a_problem(healthy: pytest.MonkeyPatch) -> None:
    healthy.setitem(sys.modules, "tensorboard.default", None)
    healthy.delattr("tensorboard.default", raising=False)
    problem = lines("PROBLEM")[0]
    assert problem.startswith("TensorBoard does not start: ")
    assert problem.endswith("run: '/a b/python' -m pip install --force-reinstall tensorboard")


def test_anything_else_worth_knowing_is_a_note(healthy: pytest.MonkeyPatch) -> None:
    other = installed(fmapboard="0.0.1", **{"tensorboard-data-server": None})
    healthy.setattr(doctor_probe, "_version", other)
    healthy.setattr(doctor_probe, "_running", lambda: [(6006, 1.7e9)])
    notes = lines("note")
    assert [note.split(" ")[0] for note in notes] == ["fmapboard", "no", "TensorBoard"]
    assert "port 6006 since 2023-11-1" in notes[2]


@pytest.mark.parametrize("said", ["exit 3", "echo", "echo 3", "echo '[3]'", "echo no json"])
def test_an_interpreter_that_does_not_answer_is_a_problem(tmp_path: Path, said: str) -> None:
    dumb = script(tmp_path / "python", "#!/bin/sh", said)
    ((severity, text),) = examine(str(dumb))
    assert severity == "PROBLEM"
    assert "could not be run" in text


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


def test_this_interpreter_answers_with_its_versions() -> None:
    severity, text = examine(sys.executable)[0]
    assert severity == "ok"
    assert "fmapboard 0.1.0" in text


def test_a_pipe_named_as_the_note_of_a_server_does_not_stop_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(doctor_probe, "_LOOKING", 0.1)
    note = tmp_path / ".tensorboard-info" / "pid-1.info"
    note.parent.mkdir()
    os.mkfifo(note)
    assert doctor_probe._running() == []
    os.close(os.open(note, os.O_WRONLY))  # ends the thread that reads it


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
