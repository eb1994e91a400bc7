"""``fmapboard serve``: start TensorBoard at the Feature maps tab, or show the tab without it.

TensorBoard runs in the Python that fmapboard is installed in, so that the tab is available, and
keeps enough steps to show a whole training run.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path

from fmapboard.errors import ConfigurationError, FmapboardError, nearby
from fmapboard.writers.remote import RemoteDirectory

KEPT_STEPS = 200
"""Steps per picture that TensorBoard keeps; 50 if it is started without this command."""

OPEN_BROWSER = "--open"
"""As the first argument of `tab_server`, makes it open the browser."""


def server_command(logdir: Path | RemoteDirectory, port: int, *, opens: bool) -> list[str]:
    """The command line that starts TensorBoard with this Python.

    Args:
        logdir: the log directory.
        port: the port; 0 for any free one.
        opens: open the Feature maps tab in the user's browser.
    """
    return [
        *(sys.executable, "-m", "fmapboard.cli.commands.tab_server"),
        *([OPEN_BROWSER] if opens else []),
        *("--logdir", str(logdir), "--port", str(port)),
        # Used for records too (`plugin.kept_steps.with_kept_steps`).
        *("--samples_per_plugin", f"images={KEPT_STEPS}"),
    ]


def run_server(
    logdir: Path | RemoteDirectory,
    port: int = 6006,
    *,
    open_browser: bool = True,
    standalone: bool = False,
    allow_host: Sequence[str] = (),
) -> None:
    """Run TensorBoard until it is interrupted; on POSIX it replaces this process.

    Args:
        logdir: The log directory.
        port: The server's port; 0 for any free one.
        open_browser: Open the Feature maps tab in the user's browser, if there is one.
        standalone: Show the tab without TensorBoard, with every logged step.
        allow_host: With --standalone: a name of this machine that browsers may use.

    Raises:
        ConfigurationError: the directory does not exist, or is not local and cannot be served
            without TensorBoard.
        FmapboardError: TensorBoard failed, or the port is in use.
    """
    if isinstance(logdir, Path) and not logdir.is_dir():
        advice = nearby(logdir) or "; give the log_dir of fmapboard.watch, or one above it"
        raise ConfigurationError(f"no such directory: {logdir}{advice}")
    opens = open_browser and sys.stdout.isatty() and can_open_browser(os.environ, sys.platform)
    if standalone:
        run_standalone(logdir, port, opens=opens, hosts=allow_host)
        return
    if allow_host:
        raise ConfigurationError("--allow-host belongs to --standalone; TensorBoard has --host")
    command = server_command(logdir, port, opens=opens)
    code = in_place(command)
    if code:
        raise FmapboardError(
            f"TensorBoard ended with exit code {code}; above is what it says, and fmapboard doctor "
            "examines the installation"
        )


def in_place(command: list[str]) -> int:
    """Run a command in place of this process; where that cannot be done, return its exit code."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)  # signals reach the server itself; no child is left behind
    return subprocess.call(command)


def run_standalone(
    logdir: Path | RemoteDirectory, port: int, *, opens: bool, hosts: Sequence[str] = ()
) -> None:
    """Show the tab without TensorBoard until it is interrupted; see `run_server`."""
    from fmapboard.plugin.standalone import listen, serve

    if not isinstance(logdir, Path):
        raise ConfigurationError(f"{logdir}: only a local directory can be shown with --standalone")
    try:
        listening = listen(port)
    except OSError as error:
        raise FmapboardError(
            f"port {port}: {error.strerror}; give another one with --port, or 0 for any free one"
        ) from error
    with listening:
        _, bound = listening.getsockname()
        address = f"http://localhost:{bound}/"
        print(f"Feature maps: {address}", flush=True)
        if opens:
            open_in_browser(address)
        serve(listening, logdir, hosts)


def open_in_browser(address: str) -> None:
    """Open an address in the user's browser, without waiting for it or failing with it."""

    def work() -> None:
        with contextlib.suppress(Exception):  # the address is printed as well
            webbrowser.open(address)

    # A thread, as a text browser blocks until the user quits it; and a daemon, as the server ends
    # whether or not it still runs.
    threading.Thread(target=work, name="fmapboard-browser", daemon=True).start()


def can_open_browser(environ: Mapping[str, str], platform: str) -> bool:
    """True if a browser that this process starts would appear on the user's screen.

    This is a guess from the environment. It is False in CI. Otherwise it is True if ``BROWSER`` is
    set (remote editors set it to a program that opens the browser on the user's machine). Without
    ``BROWSER``, it is True on macOS and Windows unless the user is logged in over SSH, and on other
    systems if there is an X11 or Wayland display.

    Args:
        environ: environment variables.
        platform: as `sys.platform`.
    """
    if environ.get("CI"):
        return False
    if environ.get("BROWSER"):
        return True
    if platform in ("darwin", "win32"):
        return not environ.get("SSH_CONNECTION")
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
