"""The commands and their options; a failure prints one line on stderr, not a traceback.

Heavy modules are imported only when a command runs, so ``--help`` is fast.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from fmapboard import __version__
from fmapboard.cli.options import EXISTING, HELP, ExampleGroup, command, options_of, taken
from fmapboard.cli.run_dirs import Directory
from fmapboard.errors import CaptureError, FmapboardError, error_text, escaped

_FAILED = 1
_USAGE = 2
_INTERRUPTED = 130

COMMON = (
    *("--model", "--weights", "--checkpoint", "--logdir", "--out", "--html", "--layers"),
    *("--list", "--samples", "--attribution", "--device"),
)
"""The options that ``--help`` and the documentation list first."""
PREPROCESSING = "input_size", "mean", "std", "resize", "crop"
"""The fields of `ModelRequest` that change how images are prepared."""


@click.group(cls=ExampleGroup, context_settings=HELP, invoke_without_command=True)
@click.version_option(__version__, prog_name="fmapboard")
@click.pass_context
def fmapboard(context: click.Context) -> None:
    """Feature maps, histograms and gradient norms of a PyTorch model in TensorBoard.

    Every command exits with 0 if it is done, 1 if it failed (check, why and diff: if something was
    found), 2 for bad usage or unreadable input, and 130 if it was interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command("fmapboard demo --serve", "Train a small network and log its feature maps.")
@options_of("run_demo", "log_dir", "steps", "every", "serve")
@options_of("run_server", "port", "open_browser")
def demo(**options: Any) -> None:
    """Train a small network on bundled photographs and log its feature maps; works offline."""
    from fmapboard.cli.commands.demo import run_demo

    run_demo(**options)


@command(
    "fmapboard run train.py --epochs 3",
    "Run a training script and watch its models.",
    name="run",
    runs_script=True,
)
@options_of("Watching", "log_dir", "every", "layers", "samples")
@options_of("Watching", "max_channels", "max_tile", "colormap", "scale")
@options_of("Watching", "activation_gradients", "attribution", "reduce_statistics", "rehearse")
@click.option(
    "-m", "is_module", is_flag=True, help="SCRIPT is the name of a module, as in python -m."
)
@click.argument("target", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
def run_command(**options: Any) -> Callable[[], None]:
    """Run SCRIPT with its ARGUMENTS as python does, watch the models it trains, and say why.

    The script is not edited: the outermost module that owns an optimizer's parameters is watched
    from the optimizer's second step on. Its output and exit status are its own; fmapboard's lines
    go to stderr. Options of fmapboard come before SCRIPT.
    """
    from fmapboard.cli.commands.run import script_to_run

    return script_to_run(**options)


@command("fmapboard serve runs/demo", "Start TensorBoard and open the Feature maps tab.")
@click.argument("logdir", type=Directory(remote=True), required=False)
@click.option(
    *("--logdir", "--log-dir"), "also", type=Directory(remote=True), help="The same as LOGDIR."
)
@options_of("run_server", "port", "open_browser", "standalone", "allow_host")
def serve(logdir: Any, also: Any, **options: Any) -> None:
    """Start TensorBoard on LOGDIR (default: runs) and open the Feature maps tab.

    Keeps the pictures of up to 200 steps per layer; the plain tensorboard command keeps 50, and
    --standalone all of them.
    """
    from fmapboard.cli.commands.serve import run_server

    if logdir is not None and also is not None:
        raise click.UsageError(f"two directories: {logdir} and --logdir {also}; give only one")
    run_server(logdir or also or Path("runs"), **options)


@command("fmapboard check runs/demo", "Say in words what is wrong in a logged run.")
@click.argument("runs", nargs=-1, required=True, type=EXISTING, metavar="RUN...")
@options_of("check_runs", "as_json", "silenced", "further")
def check(runs: tuple[Path, ...], **options: Any) -> int:
    """Say what is wrong in each RUN directory: warnings, and notes on unusual numbers.

    Exits with 0 for nothing or only notes, 1 for a warning, 2 for bad usage or if a run cannot be
    read or judged; the others are all the same.
    """
    from fmapboard.cli.commands.check import check_runs

    return _judged(lambda: check_runs(runs, **options))


@command("fmapboard why runs/demo", "Say why a run does not learn, and what to do next.")
@click.argument("runs", nargs=-1, required=True, type=EXISTING, metavar="RUN...")
@options_of("why_runs", "as_json", "pictures", "silenced", "further")
def why(runs: tuple[Path, ...], **options: Any) -> int:
    """Say of each RUN directory why it does not learn: cause, evidence, next step.

    Of several runs the worst comes first. Exits with 1 for a fault, 0 for a suspicion or nothing,
    2 for bad usage or if a run cannot be read or judged; the others are all the same.
    """
    from fmapboard.cli.commands.check import why_runs

    return _judged(lambda: why_runs(runs, **options))


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
    "fmapboard report runs/demo -o demo.html",
    "Write runs into one HTML file that opens without TensorBoard.",
    name="report",
)
@click.argument("runs", nargs=-1, required=True, type=EXISTING, metavar="RUN...")
@options_of("write_report", "out", "site", "steps", "layers")
@options_of("write_report", "max_mb", "inputs")
def report_command(**options: Any) -> None:
    """Write the Feature maps tab of each RUN directory into one HTML file, or into a site.

    Both open in a browser without TensorBoard and network. They contain the input images; maps may
    reveal them even with --no-input.
    """
    from fmapboard.cli.commands.report import say_report
    from fmapboard.report.write import write_report

    say_report(write_report(**options))


@command(
    "visualize photo.jpg --model resnet34 --logdir runs/x --out maps",
    "Draw a network's feature maps for images.",
    common=COMMON,
)
@click.argument("images", nargs=-1, type=EXISTING)
@options_of("ModelRequest", "spec", "model_args", "forward_args")
@options_of("ModelRequest", "inputs", "weights")
@click.option(
    "--checkpoint",
    type=EXISTING,
    help="Load weights from this file, folder of shards or index of shards; a glob such as "
    "'ckpt_*.pt' makes one step per checkpoint.",
)
@options_of("ModelRequest", "checkpoint_key")
@options_of("visualize", "log_dir", "out", "html")
@options_of("visualize", "step", "layers")
@options_of("visualize_images", "only_list")
@options_of("ModelRequest", *PREPROCESSING)
@options_of("visualize_images", "samples")
@options_of("visualize", "batch_size", "colormap", "scale")
@options_of("visualize", "depth", "labels", "kernels")
@options_of("visualize", "attribution", "target")
@options_of("visualize", "effective")
@options_of("ModelRequest", "device")
@click.version_option(__version__, prog_name="visualize (fmapboard)")
def visualize(**options: Any) -> None:
    """Draw the feature maps of a network for each of IMAGES (files or folders).

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Without IMAGES, a bundled photograph is used. Without --logdir and --out, both are written
    below runs/visualize.
    """
    from fmapboard.cli.commands.visualize import visualize_images
    from fmapboard.imaging.models.request import ModelRequest
    from fmapboard.imaging.visualize import Drawing

    request = taken(ModelRequest, options)
    drawing = taken(Drawing, options)
    visualize_images(request, drawing, **options)


@command(
    "fmapboard diff a.pt b.pt --model resnet18 photo.jpg",
    "Find the first layer in which two checkpoints differ.",
    name="diff",
)
@click.argument("first", type=EXISTING, metavar="A")
@click.argument("second", type=EXISTING, metavar="B")
@click.argument("images", nargs=-1, type=EXISTING)
@click.option(
    "--model",
    "spec",
    required=True,
    help="The network of both checkpoints: as --model of visualize.",
)
@options_of("diff_checkpoints", "spec_b")
@options_of("ModelRequest", "model_args", "forward_args", "inputs", "checkpoint_key")
@options_of("diff_checkpoints", "checkpoint_key_b")
@options_of("diff", "tolerance")
@options_of("diff_checkpoints", "as_json")
@options_of("diff", "out", "log_dir", "layers")
@options_of("ModelRequest", *PREPROCESSING, "device")
def diff_command(**options: Any) -> int:
    """Find the first layer in which checkpoints A and B differ on IMAGES.

    B's layers run in lockstep with A's: each receives what A's layer received, so that the error it
    adds is its own. Without IMAGES, a bundled photograph is used. Folders are searched with their
    subfolders; unreadable files in them are left out and listed.

    Exits with 0 if no layer differs, 1 if one does, 2 for bad usage or an unreadable file.
    """
    from fmapboard.cli.commands.diff import diff_checkpoints
    from fmapboard.imaging.models.request import ModelRequest

    request = taken(ModelRequest, options)
    return _judged(lambda: diff_checkpoints(request, **options))


@command(
    "fmapboard patches photos/ --model resnet18 --layers 'layer2.*' --out patches",
    "Find the parts of images that excite each channel most.",
    name="patches",
)
@click.argument("images", nargs=-1, required=True, type=EXISTING)
@click.option("--model", "spec", required=True, help="The network: as --model of visualize.")
@options_of("ModelRequest", "model_args", "forward_args")
@options_of("ModelRequest", "weights", "checkpoint", "checkpoint_key")
@options_of("patches", "layers", "k", "channels", "one_per_image")
@options_of("patches", "log_dir", "out", "step")
@options_of("ModelRequest", *PREPROCESSING)
@options_of("patches", "batch_size")
@options_of("ModelRequest", "device")
def patches_command(**options: Any) -> None:
    """Find the parts of IMAGES (files or folders) that excite each channel of a network most.

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Each image runs once. Without --log-dir and --out, both are written below runs/patches.
    """
    from fmapboard.cli.commands.visualize import search_images
    from fmapboard.imaging.models.request import ModelRequest

    search_images(taken(ModelRequest, options), **options)


for _command in (
    *(run_command, demo, serve, check, why, doctor, docs),
    *(visualize, diff_command, patches_command, report_command),
):
    fmapboard.add_command(_command)


def _judged(found: Callable[[], int]) -> int:
    """The exit status of a command that looks for something.

    Args:
        found: runs it, and returns the status: 1 if something was found.

    Raises:
        FmapboardError: it failed; the exit code is `_USAGE`, also for errors of other types, for
            which Python would exit with 1.
    """
    try:
        return int(found())
    except FmapboardError as error:
        error.exit_code = _USAGE
        raise
    except BrokenPipeError:  # whoever reads the output has seen enough
        raise
    except Exception as error:
        failed = CaptureError(error_text(error))
        failed.exit_code = _USAGE
        raise failed from error


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the ``fmapboard`` command and exit with its code."""
    done = _guarded(fmapboard, "fmapboard", arguments)
    if callable(done):  # outside of what handles errors of ours: those of a script are its own
        done()
        done = 0
    sys.exit(done)


def run_visualize(arguments: Sequence[str] | None = None) -> None:
    """Run the ``visualize`` command and exit with its code."""
    sys.exit(_guarded(visualize, "visualize", arguments))  # type: ignore[arg-type]  # no function


def _guarded(
    command: click.Command, name: str, arguments: Sequence[str] | None
) -> int | Callable[[], None]:
    """Run a command and return its exit code; an error is printed as one line on stderr.

    Returns:
        The exit code, or what is to be called instead of it.
    """
    try:
        with _encodable(sys.stdout):
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
    return status if isinstance(status, int) or callable(status) else 0


@contextlib.contextmanager
def _encodable(stream: TextIO) -> Iterator[None]:
    """Write characters that a stream cannot encode, such as → in a pipe on Windows, as escapes."""
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    before = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # of flushing it, which would hide the command's own
            stream.reconfigure(errors=before)
        raise
    stream.reconfigure(errors=before)  # a script that is run finds it as it was


def _complain(name: str, text: str, code: int) -> int:
    line = escaped(" ".join(text.split()))
    print(f"{name}: {line}", file=sys.stderr)
    return code
