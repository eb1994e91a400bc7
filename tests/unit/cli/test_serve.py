"""``fmapboard serve`` starts TensorBoard so that it keeps and shows a whole training run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tensorboard import default, program

from fmapboard.cli.commands import serve
from fmapboard.cli.commands.serve import can_open_browser, server_command
from fmapboard.cli.main import run, run_visualize
from fmapboard.cli.run_dirs import Directory, to_paste


def test_a_served_run_keeps_200_steps_of_pictures_and_of_the_tabs_records() -> None:
    command = server_command(Path("runs"), 6006, opens=False)
    assert command[:3] == [sys.executable, "-m", "fmapboard.cli.commands.tab_server"]
    server = program.TensorBoard(plugins=default.get_plugins())
    server.configure(("tensorboard", *command[3:]))
    kept = server.flags.samples_per_plugin
    assert (kept["images"], kept["feature_maps"]) == (200, 200)
    assert (server.flags.logdir, server.flags.port) == ("runs", 6006)


def test_a_remote_directory_goes_to_tensorboard_as_it_was_typed() -> None:
    typed = Directory(remote=True).convert("gs://bucket/runs", None, None)
    assert server_command(typed, 6006, opens=False)[4] == "gs://bucket/runs"
    assert to_paste("serve", typed).endswith("serve gs://bucket/runs")
    assert Directory(remote=True).convert("file:///tmp/runs", None, None) == Path("/tmp/runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["demo", "--logdir", "gs://bucket/runs"],
            "fmapboard: Invalid value for '--logdir' / '--log-dir': this must be a local folder, "
            "not 'gs://bucket/runs'",
        ),
        (
            ["serve", "missing"],
            "fmapboard: no such directory: missing; give the log_dir of fmapboard.watch, or one "
            "above it",
        ),
    ],
)
def test_an_unusable_directory_is_reported_and_none_is_created(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        run(arguments)
    assert capsys.readouterr().err.strip() == message
    assert list(tmp_path.iterdir()) == []


def test_visualize_writes_pngs_into_local_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        run_visualize(["--out", "s3://bucket/maps"])
    assert capsys.readouterr().err.strip() == (
        "visualize: Invalid value for '--out': this must be a local folder, not 's3://bucket/maps'"
    )
    assert list(tmp_path.iterdir()) == []


class Started(Exception):
    """Raised in place of TensorBoard, which would replace this process."""


def started(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command that ``fmapboard`` would run with these arguments."""
    commands: list[list[str]] = []

    def execv(path: str, command: list[str]) -> None:
        assert path == sys.executable
        commands.append(command)
        raise Started

    monkeypatch.setattr("os.execv", execv)
    with pytest.raises(Started):
        run(arguments)
    return commands[0]


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A user at a terminal on a machine with a display, in a folder with a run."""
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "BROWSER", "SSH_CONNECTION", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(serve.sys.stdout, "isatty", lambda: True)
    return monkeypatch


def test_serve_opens_the_browser_for_a_user_at_a_terminal(desktop: pytest.MonkeyPatch) -> None:
    assert started(["serve", "--port", "0"], desktop)[3:] == [
        *("--open", "--logdir", "runs", "--port", "0", "--samples_per_plugin", "images=200"),
    ]


def test_no_open_leaves_the_browser_closed(desktop: pytest.MonkeyPatch) -> None:
    assert "--open" not in started(["serve", "--no-open"], desktop)


def test_no_browser_is_opened_where_the_output_is_not_a_terminal(
    desktop: pytest.MonkeyPatch,
) -> None:
    desktop.setattr(serve.sys.stdout, "isatty", lambda: False)
    assert "--open" not in started(["serve"], desktop)


def test_no_browser_is_opened_without_a_display(desktop: pytest.MonkeyPatch) -> None:
    desktop.setattr(sys, "platform", "linux")
    desktop.delenv("DISPLAY")
    assert "--open" not in started(["serve"], desktop)


@pytest.mark.parametrize(
    ("environ", "platform", "opens"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": ":0", "CI": "true"}, "linux", False),
        ({"BROWSER": "/remote/editor/browser", "SSH_CONNECTION": "1 2 3 4"}, "linux", True),
        ({"BROWSER": "firefox", "CI": "true"}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
        ({"SSH_CONNECTION": "1 2 3 4"}, "darwin", False),
    ],
)
def test_a_browser_opens_only_where_the_user_would_see_it(
    environ: dict[str, str], platform: str, opens: bool
) -> None:
    assert can_open_browser(environ, platform) is opens
