"""The options of ``fmapboard diff``; torch is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fmapboard.cli.click_types import HELP, command_with
from fmapboard.cli.preprocessing_options import preprocessing_options
from fmapboard.cli.run_dirs import Directory
from fmapboard.cli.shared_options import (
    checkpoint_key,
    device,
    forward_arg,
    input_option,
    input_size,
    layers,
    model_arg,
    png_folder,
)

_EXISTING = click.Path(path_type=Path)


@click.command(
    "diff",
    cls=command_with("fmapboard diff a.pt b.pt --model resnet18 photo.jpg"),
    context_settings=HELP,
    short_help="Find the first layer in which two checkpoints differ.",
)
@click.argument("first", type=_EXISTING, metavar="A")
@click.argument("second", type=_EXISTING, metavar="B")
@click.argument("images", nargs=-1, type=_EXISTING)
@click.option(
    "--model",
    "spec",
    required=True,
    help="The network of both checkpoints: as --model of visualize.",
)
@click.option("--model-b", "spec_b", metavar="MODEL", help="The network of B, if it is another.")
@model_arg
@forward_arg
@input_option
@checkpoint_key
@click.option("--checkpoint-key-b", metavar="NAME", help="The same for B, if it is another.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Relative error above which a layer is different.  [default: 1e-12 in float64, 1e-5 in "
    "float32, 5e-4 in float16, 4e-3 in bfloat16]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with all layers.")
@png_folder
@click.option(
    "--log-dir",
    "--logdir",
    "log_dir",
    type=Directory(remote=False),
    help="Write the runs a, b and difference for TensorBoard into this directory.",
)
@layers("Layers to draw; always with the first difference.  [default: convolutions]")
@input_size
@preprocessing_options
@device
@click.pass_context
def diff_command(context: click.Context, /, **options: Any) -> None:
    """Find the first layer in which checkpoints A and B differ on IMAGES.

    B's layers run in lockstep with A's: each receives what A's layer received, so that the error it
    adds is its own. Without IMAGES, a bundled photograph is used. Folders are searched with their
    subfolders; unreadable files in them are left out and listed.

    Exits with 0 if no layer differs, 1 if one does, 2 for bad usage or an unreadable file.
    """
    from fmapboard.cli.diff_checkpoints import Request, diff_checkpoints

    context.exit(diff_checkpoints(Request(**options)))
