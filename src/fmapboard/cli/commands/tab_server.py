"""TensorBoard as a program that prints, and can open, the address of the Feature maps tab.

`serve` runs ``python -m fmapboard.cli.commands.tab_server [--open] OPTIONS`` with TensorBoard's
options. The address is printed by the server, because only it knows which port ``--port 0`` got,
and when the port is open. If TensorBoard cannot start, the tab is shown without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from fmapboard.cli.commands.doctor_probe import without_pkg_resources
from fmapboard.cli.commands.serve import OPEN_BROWSER, in_place, open_in_browser
from fmapboard.errors import error_text, escaped
from fmapboard.formats.tab_records import PLUGIN_NAME


def show_without(reason: str, port: str = "") -> NoReturn:
    """Show the tab without TensorBoard in place of this process, which was to be TensorBoard's.

    Args:
        reason: why TensorBoard does not start, in words.
        port: the port; empty for that of this process's arguments.
    """
    given = dict(zip(sys.argv, sys.argv[1:], strict=False))
    logdir = given["--logdir"]
    line = escaped(" ".join(reason.split()))
    if "://" in logdir:
        sys.exit(f"fmapboard: {line}")
    print(f"fmapboard: {line}. Showing the tab without it", file=sys.stderr, flush=True)
    words = ["serve", "--standalone", "--logdir", logdir, "--port", port or given["--port"]]
    if OPEN_BROWSER not in sys.argv:
        words.append("--no-open")
    sys.exit(in_place([sys.executable, "-m", "fmapboard", *words]))


def reason_of(error: Exception) -> str:
    """Why TensorBoard does not start, in words, and what to do."""
    if isinstance(error, ModuleNotFoundError) and error.name == "pkg_resources":
        return without_pkg_resources(sys.executable)
    return f"TensorBoard does not start ({error_text(error)}; see fmapboard doctor)"


try:
    from absl import app
    from tensorboard import default, main_lib, program
    from tensorboard.plugins.base_plugin import FlagsError
except Exception as error:  # of another protobuf, which raises a TypeError
    show_without(reason_of(error))


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


def main() -> None:
    """Run TensorBoard with this process's arguments, as ``tensorboard.main`` does."""
    opens = sys.argv[1:2] == [OPEN_BROWSER]
    arguments = [sys.argv[0], *sys.argv[2 if opens else 1 :]]
    main_lib.global_init()
    show: Callable[[str], object] = open_in_browser if opens else str
    scanning = program.with_port_scanning(partial(TabServer, show=show))

    def server(wsgi_app: Any, flags: Any) -> Any:
        try:
            return scanning(wsgi_app, flags)
        except program.TensorBoardServerException as error:
            show_without(f"TensorBoard does not start ({error.msg})", port="0")

    try:
        plugins = default.get_plugins()
    except Exception as error:  # of another package's plugin
        show_without(reason_of(error))
    tensorboard = program.TensorBoard(plugins=plugins, server_class=server)
    try:
        app.run(tensorboard.main, argv=arguments, flags_parser=tensorboard.configure)
    except FlagsError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
