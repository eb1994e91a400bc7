"""The commands and their options; a failure prints one line on stderr, not a traceback.

Heavy modules are imported only when a command runs, so ``--help`` is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmapboard import __version__
from fmapboard.cli.click_types import ExampleGroup, Palette, command_with
from fmapboard.cli.run_dirs import Directory
from fmapboard.errors import FmapboardError

if TYPE_CHECKING:
    from fmapboard.writers.remote import RemoteDirectory

_USAGE, _FAILED, _INTERRUPTED = 2, 1, 130


_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXISTING = click.Path(path_type=Path)
_FOLDER, _LOG_DIRECTORY = Directory(remote=False), Directory(remote=True)
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


@click.group(cls=ExampleGroup, context_settings=_HELP, invoke_without_command=True)
@click.version_option(__version__, prog_name="fmapboard")
@click.pass_context
def fmapboard(context: click.Context) -> None:
    """Feature maps, histograms and gradient norms of a PyTorch model in TensorBoard."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@fmapboard.command(
    cls=command_with("visualize photo.jpg --model resnet34 --logdir runs/x --out maps"),
    context_settings=_HELP,
    short_help="Draw a network's feature maps for images.",
)
@click.argument("images", nargs=-1, type=_EXISTING)
@click.option(
    "--model",
    "spec",
    default="demo",
    show_default=True,
    help="A torchvision name, timm:NAME, hf:NAME or hf:FOLDER (Hugging Face), "
    "package.module:callable, or demo, the bundled network.",
)
@click.option(
    "--model-arg",
    "model_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument of the model's constructor, such as num_classes=10. Repeatable.",
)
@click.option(
    "--forward-arg",
    "forward_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument that the model's forward takes in addition to the images. Repeatable.",
)
@click.option(
    "--weights",
    default="DEFAULT",
    show_default=True,
    help="DEFAULT (pretrained, downloaded if needed), none (random), a weights file, or the "
    "name of torchvision weights.",
)
@click.option(
    "--checkpoint",
    type=_EXISTING,
    help="Load weights from this file, folder of shards or index of shards.",
)
@click.option(
    "--checkpoint-key",
    metavar="NAME",
    help="Which weights to load if a checkpoint holds several, such as state_dict_ema.",
)
@click.option(
    "--logdir", type=_LOG_DIRECTORY, help="Write TensorBoard event files into this run directory."
)
@click.option("--out", type=_FOLDER, help="Write PNG files into this folder.")
@click.option(
    "--layers",
    multiple=True,
    metavar="GLOB",
    help="Layers to draw, such as 'layer1.*'; '!*.downsample.*' excludes layers. Repeatable.",
)
@click.option(
    "--list", "only_list", is_flag=True, help="List layers by kernel shape and draw nothing."
)
@click.option("--input-size", type=click.IntRange(min=1), help="Side of the square input in px.")
@click.option("--samples", type=click.IntRange(min=1), help="Draw only the first N images.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Maximum number of images per forward pass; it does not change the result.",
)
@click.option(
    "--colormap",
    type=Palette(["grey", "viridis", "magma", "signed"]),
    default="grey",
    show_default=True,
)
@click.option(
    "--scale",
    type=click.Choice(["channel", "layer"]),
    default="channel",
    show_default=True,
    help="Normalize each channel on its own, or all channels of a layer together.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    help="Depth slice of 3-D maps to draw, counted from 0.  [default: the middle one]",
)
@click.option("--kernels", is_flag=True, help="Also draw the convolution kernels.")
@click.option(
    "--attribution",
    is_flag=True,
    help="Also draw where larger activations raise the score of a class, over the image.",
)
@click.option(
    "--class",
    "class_number",
    type=click.IntRange(min=0),
    metavar="N",
    help="Which class, counted from 0.  [default: the one with the highest score]",
)
@click.option("--device", default="cpu", show_default=True, help="Torch device, such as cuda:0.")
@click.version_option(__version__, prog_name="visualize (fmapboard)")
def visualize(**options: Any) -> None:
    """Draw the feature maps of a network for each of IMAGES (files or folders).

    Without IMAGES, a bundled photograph is used. Without --logdir and --out, both are written
    below runs/visualize.
    """
    from fmapboard.cli.visualize import Request, visualize_images

    visualize_images(Request(**options))


@fmapboard.command(
    cls=command_with("fmapboard demo --serve"),
    context_settings=_HELP,
    short_help="Train a small network and log its feature maps.",
)
@click.option(
    "--logdir",
    type=_FOLDER,
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
    from fmapboard.cli.demo import run_demo

    run_demo(open_browser=not no_open, **options)


@fmapboard.command(
    cls=command_with("fmapboard serve runs/demo"),
    context_settings=_HELP,
    short_help="Start TensorBoard and open the Feature maps tab.",
)
@click.argument("logdir", type=_LOG_DIRECTORY, default=Path("runs"))
@_port
@_no_open
def serve(logdir: Path | RemoteDirectory, port: int, no_open: bool) -> None:
    """Start TensorBoard on LOGDIR (default: runs) and open the Feature maps tab.

    Keeps the pictures of up to 200 steps per layer; the plain tensorboard command keeps 50.
    """
    from fmapboard.cli.serve import run_server

    run_server(logdir, port, open_browser=not no_open)


@fmapboard.command(
    cls=command_with("fmapboard check runs/demo"),
    context_settings=_HELP,
    short_help="Say in words what is wrong in a logged run.",
)
@click.argument("runs", nargs=-1, required=True, type=_EXISTING, metavar="RUN...")
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
    """Say what is wrong in each RUN directory: warnings for facts, notes for unusual figures.

    Exits with 0 for nothing or only notes, 1 for a warning, 2 for bad usage or an unreadable run.
    """
    from fmapboard.cli.check import check_runs

    context.exit(check_runs(runs, **options))


@fmapboard.command(
    cls=command_with("fmapboard doctor"),
    context_settings=_HELP,
    short_help="Check that TensorBoard has the Feature maps tab.",
)
def doctor() -> None:
    """Check that TensorBoard has the Feature maps tab; if not, say how to fix it."""
    from fmapboard.cli.doctor import run_doctor

    run_doctor()


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
    line = " ".join(text.split())
    print(f"{name}: {line}", file=sys.stderr)
    return code
