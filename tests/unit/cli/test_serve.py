"""``fmapboard serve`` starts the TensorBoard that shows a whole training."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tensorboard import default, program

from fmapboard.cli.main import run, run_visualize
from fmapboard.cli.run_dirs import Directory, to_paste
from fmapboard.cli.serve import server_command


def test_a_served_run_keeps_200_steps_of_pictures_and_of_the_tabs_records() -> None:
    command = server_command(Path("runs"), 6006)
    assert command[:3] == [sys.executable, "-m", "tensorboard.main"]
    server = program.TensorBoard(plugins=default.get_plugins())
    server.configure(("tensorboard", *command[3:]))
    kept = server.flags.samples_per_plugin
    assert (kept["images"], kept["feature_maps"]) == (200, 200)
    assert (server.flags.logdir, server.flags.port) == ("runs", 6006)


def test_a_remote_directory_goes_to_tensorboard_as_it_was_typed() -> None:
    typed = Directory(remote=True).convert("gs://bucket/runs", None, None)
    assert server_command(typed, 6006)[4] == "gs://bucket/runs"
    assert to_paste("serve", typed).endswith("serve gs://bucket/runs")
    assert Directory(remote=True).convert("file:///tmp/runs", None, None) == Path("/tmp/runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["demo", "--logdir", "gs://bucket/runs"],
            "fmapboard: Invalid value for '--logdir': this must be a local folder, not "
            "'gs://bucket/runs'",
        ),
        (["serve", "missing"], "fmapboard: no such directory: missing"),
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
