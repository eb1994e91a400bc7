"""The server prints the address of the Feature maps tab, and opens it in the user's browser."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
import threading
import webbrowser
from pathlib import Path

import pytest
from event_files import write
from local_servers import take_pkg_resources
from standalone_servers import started

from fmapboard.cli.commands import serve, tab_server
from fmapboard.cli.commands.serve import server_command


class FakeServer(tab_server.TabServer):
    """The server without its socket."""

    def __init__(self, url: str, shown: list[str]) -> None:
        self._url, self._show = url, shown.append

    def get_url(self) -> str:
        return self._url

    @property
    def _flags(self) -> object:
        return type("Flags", (), {"host": "localhost", "bind_all": False})


def test_the_tabs_address_is_printed_and_shown_once_the_server_listens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[str] = []
    FakeServer("http://localhost:6006/", shown).print_serving_message()
    assert shown == ["http://localhost:6006/#feature_maps"]
    said = capsys.readouterr()
    assert said.out == "Feature maps: http://localhost:6006/#feature_maps\n"
    assert "at http://localhost:6006/ (Press CTRL+C to quit)" in said.err


def test_the_address_is_opened_in_the_users_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, done = [], threading.Event()

    def fake_open(address: str) -> bool:
        opened.append((address, threading.current_thread().daemon))
        done.set()
        return True

    monkeypatch.setattr(webbrowser, "open", fake_open)
    tab_server.open_in_browser("http://localhost:6006/#feature_maps")
    assert done.wait(10)
    assert opened == [("http://localhost:6006/#feature_maps", True)]


def test_a_browser_that_cannot_be_started_does_not_reach_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(address: str) -> bool:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    tab_server.open_in_browser("http://localhost:6006/")
    (thread,) = [t for t in threading.enumerate() if t.name == "fmapboard-browser"] or [None]
    if thread is not None:
        thread.join(10)  # an exception in a thread fails the test


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that prints the address that it is given."""
    program = tmp_path / "browser"
    program.write_text('#!/bin/sh\necho "opened $1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("opens", [False, True], ids=["printed", "opened"])
def test_a_real_server_prints_its_tabs_address_and_opens_it_if_asked(
    opens: bool, tmp_path: Path
) -> None:
    command = server_command(tmp_path, 0, opens=opens)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        timer = threading.Timer(60, server.terminate)  # so that the test fails instead of hanging
        timer.start()
        try:
            title, _, address = server.stdout.readline().strip().partition(": ")
            if opens:
                assert server.stdout.readline() == f"opened {address}\n"
        finally:
            timer.cancel()
            server.terminate()
        rest = server.stdout.read()
    assert title == "Feature maps"
    assert re.fullmatch(r"http://localhost:[1-9]\d*/#feature_maps", address)
    assert rest == ""


def test_without_pkg_resources_one_line_names_the_cure_and_the_tab_is_shown_without_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take_pkg_resources(tmp_path, monkeypatch)
    monkeypatch.delitem(sys.modules, tab_server.__name__)
    commands: list[list[str]] = []
    monkeypatch.setattr(serve, "in_place", lambda command: commands.append(command) or 7)
    install = f"{shlex.quote(sys.executable)} -m pip install"
    cure = (
        "fmapboard: TensorBoard does not start: before version 2.21 it needs pkg_resources, which "
        f"setuptools 82 and newer no longer have; run: {install} 'setuptools<82', or: {install} "
        "--upgrade tensorboard"
    )
    monkeypatch.setattr(sys, "argv", ["tab", "--logdir", "runs", "--port", "6006"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(tab_server.__name__)
    assert ended.value.code == 7
    assert capsys.readouterr().err == f"{cure}. Showing the tab without it\n"
    shown = ["serve", "--standalone", "--logdir", "runs", "--port", "6006", "--no-open"]
    assert commands == [[sys.executable, "-m", "fmapboard", *shown]]
    monkeypatch.setattr(sys, "argv", ["tab", "--logdir", "s3://bucket/runs", "--port", "6006"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(tab_server.__name__)
    assert ended.value.code == cure


BROKEN = {"tensorboard.py": "raise TypeError('Descriptors cannot\\nbe created directly.')"}
"""Name of a module -> what it does instead of being imported, as a broken installation."""
REASONS = {
    "tensorboard.py": "TypeError: Descriptors cannot be created directly.; see fmapboard doctor",
    "": "TensorBoard could not bind to port",
}


@pytest.mark.parametrize("broken", [*BROKEN, ""], ids=["tensorboard", "port"])
def test_where_tensorboard_cannot_start_the_tab_is_shown_without_it(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "logs" / "run", 0)
    if broken:
        tmp_path.joinpath(broken).write_text(BROKEN[broken])
        paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        monkeypatch.setenv("PYTHONPATH", paths)
    with socket.create_server(("127.0.0.1", 0)) as taken, tmp_path.joinpath("err").open("w") as err:
        port = 0 if broken else taken.getsockname()[1]
        with started("serve", str(tmp_path / "logs"), port=port, stderr=err) as server:
            status, body = server.get("/data/runs")
    assert (status, json.loads(body)["runs"][0]["run"]) == (200, "run")
    *before, line = tmp_path.joinpath("err").read_text().splitlines()
    assert line.startswith(f"fmapboard: TensorBoard does not start ({REASONS[broken]}")
    assert line.endswith("). Showing the tab without it")
    assert not broken or before == []  # TensorBoard prints lines of its own before it has a port
