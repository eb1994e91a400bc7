"""TensorBoard as a program that prints, and can open, the address of the Feature maps tab.

`serve` runs ``python -m fmapboard.cli.commands.tab_server [--open] OPTIONS`` with TensorBoard's
options. The address is printed by the server, because only it knows which port ``--port 0`` got,
and when the port is open.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import webbrowser
from collections.abc import Callable
from functools import partial
from typing import Any

from absl import app

from fmapboard.cli.commands.doctor_probe import without_pkg_resources
from fmapboard.cli.commands.serve import OPEN_BROWSER
from fmapboard.formats.tab_records import PLUGIN_NAME

try:
    from tensorboard import default, main_lib, program
    from tensorboard.plugins.base_plugin import FlagsError
except ModuleNotFoundError as error:
    if error.name != "pkg_resources":
        raise
    sys.exit(f"fmapboard: {without_pkg_resources(sys.executable)}")


class TabServer(program.WerkzeugServer):  # type: ignore[misc]  # tensorboard has no types
    """TensorBoard's server, which also prints the tab's address.

    Args:
        wsgi_app: TensorBoard's application.
        flags: TensorBoard's options.
        show: called once with the address when the server listens.
    """

    def __init__(self, wsgi_app: Any, flags: Any, *, show: Callable[[str], object]) -> None:
        super().__init__(wsgi_app, flags)
        self._show = show

    def print_serving_message(self) -> None:
        """Print TensorBoard's message, and then the tab's address on stdout."""
        super().print_serving_message()
        address = f"{self.get_url()}#{PLUGIN_NAME}"
        print(f"Feature maps: {address}", flush=True)
        self._show(address)


def open_in_browser(address: str) -> None:
    """Open an address in the user's browser, without waiting for it or failing with it."""

    def work() -> None:
        with contextlib.suppress(Exception):  # the address is printed as well
            webbrowser.open(address)

    # A thread, as a text browser blocks until the user quits it; and a daemon, as the server ends
    # whether or not it still runs.
    threading.Thread(target=work, name="fmapboard-browser", daemon=True).start()


def main() -> None:
    """Run TensorBoard with this process's arguments, as ``tensorboard.main`` does."""
    opens = sys.argv[1:2] == [OPEN_BROWSER]
    arguments = [sys.argv[0], *sys.argv[2 if opens else 1 :]]
    main_lib.global_init()
    show: Callable[[str], object] = open_in_browser if opens else str
    server = program.with_port_scanning(partial(TabServer, show=show))
    tensorboard = program.TensorBoard(plugins=default.get_plugins(), server_class=server)
    try:
        app.run(tensorboard.main, argv=arguments, flags_parser=tensorboard.configure)
    except FlagsError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
