"""TensorBoard on a run, with the Python that fmapboard is installed in.

So the Feature maps tab is there, and TensorBoard keeps enough steps to see a whole training.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fmapboard.errors import FmapboardError
from fmapboard.writers.remote import RemoteDirectory

KEPT_STEPS = 200
"""So many steps of each picture are kept: 50 where TensorBoard is started by itself."""


class ServerError(FmapboardError):
    """TensorBoard ended with an error."""


def server_command(logdir: Path | RemoteDirectory, port: int) -> list[str]:
    """The command line that starts TensorBoard with this very Python."""
    return [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(logdir),
        "--port",
        str(port),
        "--samples_per_plugin",
        f"images={KEPT_STEPS}",  # the tab's records follow (`plugin.loader.with_kept_steps`)
    ]


def run_server(logdir: Path | RemoteDirectory, port: int) -> None:
    """Become TensorBoard (where the system can), until it is interrupted.

    Raises:
        ServerError: the directory is missing, or TensorBoard failed.
    """
    if isinstance(logdir, Path) and not logdir.is_dir():
        raise ServerError(f"no such directory: {logdir}")
    command = server_command(logdir, port)
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)  # signals reach the server itself; nothing is left behind
    code = subprocess.call(command)
    if code:
        raise ServerError(f"TensorBoard ended with exit code {code}")
