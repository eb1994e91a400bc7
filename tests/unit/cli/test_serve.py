"""``fmapboard serve`` starts the TensorBoard that shows a whole training."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorboard import default, program

from fmapboard.cli.serve import server_command


def test_a_served_run_keeps_200_steps_of_pictures_and_of_the_tabs_records() -> None:
    command = server_command(Path("runs"), 6006)
    assert command[:3] == [sys.executable, "-m", "tensorboard.main"]
    server = program.TensorBoard(plugins=default.get_plugins())
    server.configure(("tensorboard", *command[3:]))
    kept = server.flags.samples_per_plugin
    assert (kept["images"], kept["feature_maps"]) == (200, 200)
    assert (server.flags.logdir, server.flags.port) == ("runs", 6006)
