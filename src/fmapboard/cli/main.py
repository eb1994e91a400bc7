"""The commands, their options and how they fail: one line on stderr, never a traceback.

Nothing heavy is imported before a command runs, so ``--help`` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmapboard import __version__
from fmapboard.cli.run_dirs import Directory
from fmapboard.errors import FmapboardError

if TYPE_CHECKING:
    from fmapboard.writers.remote import RemoteDirectory

_USAGE, _FAILED, _INTERRUPTED = 2, 1, 130


class _Command(click.Command):
    """A command whose help opens with a line to paste."""

    example = ""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"{self.example}\n\n")
        super().format_usage(ctx, formatter)


def _command(example: str) -> type[_Command]:
    return type("Command", (_Command,), {"example": example})


class _Group(click.Group):
    """The top command; its help opens with a line to paste as well."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("fmapboard demo\n\n")
        super().format_usage(ctx, formatter)


class _Palette(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Names of palettes; ``gray`` is one spelling of ``grey``."""

    def convert(self, value: Any, *context: Any) -> Any:
        return super().convert("grey" if value == "gray" else value, *context)


_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXISTING = click.Path(path_type=Path)
_FOLDER, _LOG_DIRECTORY = Directory(remote=False), Directory(remote=True)


@click.group(cls=_Group, context_settings=_HELP, invoke_without_command=True)
@click.version_option(__version__, prog_name="fmapboard")
@click.pass_context
def fmapboard(context: click.Context) -> None:
    """Feature maps, histograms and gradient norms of a PyTorch model in TensorBoard."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@fmapboard.command(
    cls=_command("visualize photo.jpg --model resnet34 --logdir runs/x --out maps"),
    context_settings=_HELP,
)
@click.argument("images", nargs=-1, type=_EXISTING)
@click.option(
    "--model",
    "spec",
    default="demo",
    show_default=True,
    help="A torchvision name, timm:NAME, hf:NAME or hf:FOLDER (Hugging Face), "
    "package.module:callable, or the bundled demo network.",
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
    help="An argument that the model's forward takes besides images. Repeatable.",
)
@click.option(
    "--weights",
    default="DEFAULT",
    show_default=True,
    help="DEFAULT (downloaded), none (random), a file, or a torchvision weights name.",
)
@click.option(
    "--checkpoint",
    type=_EXISTING,
    help="Weights to load into the model: a file, or a folder or index of shards.",
)
@click.option(
    "--checkpoint-key",
    metavar="NAME",
    help="Which weights of a checkpoint that holds several, such as state_dict_ema.",
)
@click.option(
    "--logdir", type=_LOG_DIRECTORY, help="Write for TensorBoard into this run directory."
)
@click.option("--out", type=_FOLDER, help="Write PNG files into this folder.")
@click.option(
    "--layers",
    multiple=True,
    metavar="GLOB",
    help="Layers to draw, such as 'layer1.*'; '!*.downsample.*' leaves out. Repeatable.",
)
@click.option("--list", "only_list", is_flag=True, help="List layers by kernel shape; run nothing.")
@click.option("--input-size", type=click.IntRange(min=1), help="Side of the square input in px.")
@click.option("--samples", type=click.IntRange(min=1), help="Draw at most so many of the images.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="At most so many images a forward pass; what is drawn of each does not depend on it.",
)
@click.option(
    "--colormap",
    type=_Palette(["grey", "viridis", "magma", "signed"]),
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
    "--depth", type=click.IntRange(min=0), help="Draw this depth slice of 3-D maps, not the middle."
)
@click.option("--kernels", is_flag=True, help="Draw the convolution kernels too.")
@click.option("--device", default="cpu", show_default=True, help="Where to run the model.")
@click.version_option(__version__, prog_name="visualize (fmapboard)")
def visualize(**options: Any) -> None:
    """Draw what every layer of a network makes of IMAGES (files or folders).

    Without IMAGES: a bundled photograph. Without --logdir and --out: both, below runs/visualize.
    """
    from fmapboard.cli.visualize import Request, visualize_images

    visualize_images(Request(**options))


@fmapboard.command(cls=_command("fmapboard demo --serve"), context_settings=_HELP)
@click.option(
    "--logdir",
    type=_FOLDER,
    default=Path("runs/demo"),
    show_default=True,
    help="Run directory; where it exists, the next free one (runs/demo-2) is taken.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=None, help="Training steps.  [default: 250]"
)
@click.option(
    "--every", type=click.IntRange(min=1), default=25, show_default=True, help="Log each such step."
)
@click.option("--serve", is_flag=True, help="Start TensorBoard on the run afterwards.")
@click.option("--port", type=click.IntRange(0, 65535), default=6006, show_default=True)
def demo(**options: Any) -> None:
    """Train a small network on bundled photographs, watched, and look inside. Needs no network."""
    from fmapboard.cli.demo import run_demo

    run_demo(**options)


@fmapboard.command(cls=_command("fmapboard serve runs/demo"), context_settings=_HELP)
@click.argument("logdir", type=_LOG_DIRECTORY, default=Path("runs"))
@click.option("--port", type=click.IntRange(0, 65535), default=6006, show_default=True)
def serve(logdir: Path | RemoteDirectory, port: int) -> None:
    """Start TensorBoard on LOGDIR with enough pictures kept to see a whole training."""
    from fmapboard.cli.serve import run_server

    run_server(logdir, port)


@fmapboard.command(cls=_command("fmapboard doctor"), context_settings=_HELP)
def doctor() -> None:
    """Say whether TensorBoard has the Feature maps tab, and what is wrong where it has not."""
    from fmapboard.cli.doctor import run_doctor

    run_doctor()


def run(arguments: Sequence[str] | None = None) -> None:
    """The ``fmapboard`` command."""
    sys.exit(_guarded(fmapboard, "fmapboard", arguments))


def run_visualize(arguments: Sequence[str] | None = None) -> None:
    """The ``visualize`` command."""
    sys.exit(_guarded(visualize, "visualize", arguments))


def _guarded(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command; errors become one line on stderr and an exit code."""
    try:
        command.main(
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
    return 0


def _complain(name: str, text: str, code: int) -> int:
    line = " ".join(text.split())
    print(f"{name}: {line}", file=sys.stderr)
    return code
