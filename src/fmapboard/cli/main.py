"""The commands and their options; a failure prints one line on stderr, not a traceback.

Heavy modules are imported only when a command runs, so ``--help`` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import shell_complete

from fmapboard import __version__
from fmapboard.cli.model_commands import diff_command, patches_command, visualize
from fmapboard.cli.options import (
    EXISTING,
    HELP,
    LAYERS,
    ExampleGroup,
    command,
    judged,
)
from fmapboard.cli.run_dirs import Directory
from fmapboard.errors import FmapboardError, escaped

if TYPE_CHECKING:
    from fmapboard.writers.remote import RemoteDirectory


SHELLS = ("bash", "zsh", "fish")
_USAGE, _FAILED, _INTERRUPTED = 2, 1, 130


_port = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6006,
    show_default=True,
    help="TensorBoard's port; 0 for any free one.",
)
_no_open = click.option(
    "--no-open", is_flag=True, help="Print the tab's address without opening a browser."
)


@click.group(cls=ExampleGroup, context_settings=HELP, invoke_without_command=True)
@click.version_option(__version__, prog_name="fmapboard")
@click.pass_context
def fmapboard(context: click.Context) -> None:
    """Feature maps, histograms and gradient norms of a PyTorch model in TensorBoard.

    Every command exits with 0 if it is done, 1 if it failed (check and diff: if something was
    found), 2 for bad usage or unreadable input, and 130 if it was interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command("fmapboard demo --serve", "Train a small network and log its feature maps.")
@click.option(
    "--logdir",
    "--log-dir",
    type=Directory(remote=False),
    default=Path("runs/demo"),
    show_default=True,
    help="Run directory; if it is not empty, the next free name is used, such as runs/demo-2.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=None, help="Training steps.  [default: 250]"
)
@click.option(
    "--every", type=click.IntRange(min=1), default=25, show_default=True, help="Log every N steps."
)
@click.option("--serve", is_flag=True, help="Start TensorBoard on the run afterwards.")
@_port
@_no_open
def demo(no_open: bool, **options: Any) -> None:
    """Train a small network on bundled photographs and log its feature maps; works offline."""
    from fmapboard.cli.commands.demo import run_demo

    run_demo(open_browser=not no_open, **options)


@command("fmapboard serve runs/demo", "Start TensorBoard and open the Feature maps tab.")
@click.argument("logdir", type=Directory(remote=True), required=False)
@click.option(
    *("--logdir", "--log-dir"), "also", type=Directory(remote=True), help="The same as LOGDIR."
)
@_port
@_no_open
def serve(
    logdir: Path | RemoteDirectory | None,
    also: Path | RemoteDirectory | None,
    port: int,
    no_open: bool,
) -> None:
    """Start TensorBoard on LOGDIR (default: runs) and open the Feature maps tab.

    Keeps the pictures of up to 200 steps per layer; the plain tensorboard command keeps 50.
    """
    from fmapboard.cli.commands.serve import run_server

    if logdir is not None and also is not None:
        raise click.UsageError(f"two directories: {logdir} and --logdir {also}; give only one")
    run_server(logdir or also or Path("runs"), port, open_browser=not no_open)


@command("fmapboard check runs/demo", "Say in words what is wrong in a logged run.")
@click.argument("runs", nargs=-1, required=True, type=EXISTING, metavar="RUN...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of findings.")
@click.option(
    "--without", "silenced", multiple=True, metavar="KIND", help="Leave out a check. Repeatable."
)
@click.option(
    "--check",
    "further",
    multiple=True,
    metavar="MODULE:NAME",
    help="Add a check of your own, such as package.module:MyCheck. Repeatable.",
)
@click.pass_context
def check(context: click.Context, /, runs: tuple[Path, ...], **options: Any) -> None:
    """Say what is wrong in each RUN directory: warnings, and notes on unusual numbers.

    Exits with 0 for nothing or only notes, 1 for a warning, 2 for bad usage or an unreadable run.
    """
    from fmapboard.cli.commands.check import check_runs

    context.exit(judged(lambda: check_runs(runs, **options)))


@command("fmapboard doctor", "Check that TensorBoard has the Feature maps tab.")
def doctor() -> None:
    """Check that TensorBoard has the Feature maps tab; if not, say how to fix it."""
    from fmapboard.cli.commands.doctor import run_doctor

    run_doctor()


@command("fmapboard docs checks#dead", "Print a page of the documentation.")
@click.argument("page", required=False, metavar="[PAGE[#SECTION]]")
def docs(page: str | None) -> None:
    """Print a page of the documentation, or one of its sections; without PAGE, list the pages."""
    from fmapboard.cli.commands.docs import print_docs

    print_docs(page)


@command(
    'eval "$(fmapboard completion bash)"    # in ~/.bashrc',
    "Print a script that completes the commands in a shell.",
)
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def completion(shell: str | None) -> None:
    """Print a script that completes the commands and options of fmapboard and visualize in SHELL.

    SHELL is yours by default. In ~/.zshrc, put the line after compinit.
    """
    instruction = f"{shell or shell_in(os.environ)}_source"
    for name, program in (("fmapboard", fmapboard), ("visualize", visualize)):
        shell_complete(program, {}, name, f"_{name.upper()}_COMPLETE", instruction)


@command(
    "fmapboard report runs/demo -o demo.html",
    "Write runs into one HTML file that opens without TensorBoard.",
    name="report",
)
@click.argument("runs", nargs=-1, required=True, type=EXISTING, metavar="RUN...")
@click.option(
    "--out",
    "-o",
    type=EXISTING,
    default=Path("report.html"),
    show_default=True,
    help="The HTML file.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Pictures of at most N steps per run: first, last, where faults began, others between.",
)
@click.option(
    "--layers",
    help="Layers to include, such as 'layer1.*'; '!*.downsample.*' excludes layers. Repeatable.",
    **LAYERS,
)
@click.option(
    "--max-mb",
    type=click.FloatRange(min=0, min_open=True),
    default=20,
    show_default=True,
    help="Size limit; to keep it, maps are drawn smaller, then steps and layers are left out.",
)
@click.option("--no-input", is_flag=True, help="Leave out pictures of the network's input.")
def report_command(**options: Any) -> None:
    """Write the Feature maps tab of each RUN directory into one HTML file.

    The file opens in a browser without TensorBoard and network. It contains the input images; maps
    may reveal them even with --no-input.
    """
    from fmapboard.cli.commands.report import say_report
    from fmapboard.report.write import write_report

    layers, inputs = options.pop("layers") or (), not options.pop("no_input")
    say_report(write_report(**options, layers=layers, inputs=inputs))


for _command in (
    *(demo, serve, check, doctor, docs, completion),
    *(visualize, diff_command, patches_command, report_command),
):
    fmapboard.add_command(_command)


def shell_in(environment: Mapping[str, str]) -> str:
    """The name of the user's shell.

    Raises:
        click.UsageError: It is none of `SHELLS`.
    """
    shell = Path(environment.get("SHELL", "")).name
    if shell not in SHELLS:
        raise click.UsageError(
            f"your shell ({shell or 'unknown'}) is none of {', '.join(SHELLS)}; name one: "
            "fmapboard completion bash"
        )
    return shell


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the ``fmapboard`` command and exit with its code."""
    sys.exit(_guarded(fmapboard, "fmapboard", arguments))


def run_visualize(arguments: Sequence[str] | None = None) -> None:
    """Run the ``visualize`` command and exit with its code."""
    sys.exit(_guarded(visualize, "visualize", arguments))


def _guarded(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit code; an error is printed as one line on stderr."""
    try:
        status = command.main(
            args=None if arguments is None else list(arguments),
            prog_name=name,
            standalone_mode=False,
        )
    except click.ClickException as error:
        return _complain(name, error.format_message(), _USAGE)
    except FmapboardError as error:
        return _complain(name, str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _complain(name, "interrupted", _INTERRUPTED)
    except BrokenPipeError:
        return _FAILED
    except MemoryError:
        return _complain(name, "out of memory; try a smaller --input-size", _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(name, f"{where}{error.strerror or error}", _FAILED)
    return status if isinstance(status, int) else 0


def _complain(name: str, text: str, code: int) -> int:
    line = escaped(" ".join(text.split()))
    print(f"{name}: {line}", file=sys.stderr)
    return code
