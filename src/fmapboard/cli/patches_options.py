"""The options of ``fmapboard patches``; torch is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fmapboard.cli.click_types import HELP, command_with
from fmapboard.cli.preprocessing_options import preprocessing_options
from fmapboard.cli.run_dirs import Directory
from fmapboard.cli.shared_options import (
    batch_size,
    checkpoint_key,
    device,
    forward_arg,
    input_size,
    layers,
    model_arg,
    png_folder,
    step,
    weights,
)

_EXISTING = click.Path(path_type=Path)


@click.command(
    "patches",
    cls=command_with(
        "fmapboard patches photos/ --model resnet18 --layers 'layer2.*' --out patches"
    ),
    context_settings=HELP,
    short_help="Find the parts of images that excite each channel most.",
)
@click.argument("images", nargs=-1, required=True, type=_EXISTING)
@click.option(
    "--model",
    "spec",
    required=True,
    help="The network: as --model of visualize.",
)
@model_arg
@forward_arg
@weights
@click.option(
    "--checkpoint", type=_EXISTING, help="Load weights from this file, folder or index of shards."
)
@checkpoint_key
@layers("Layers to search, such as 'layer1.*'.  [default: all convolutions]")
@click.option(
    "-k", type=click.IntRange(min=1), default=9, show_default=True, help="Crops per channel."
)
@click.option(
    "--channels",
    type=click.IntRange(min=0),
    default=64,
    show_default=True,
    help="Search the first N channels of each layer; 0 for all.",
)
@click.option(
    "--several-per-image",
    is_flag=True,
    help="Take the largest values of all positions.  [default: at most one crop of an image]",
)
@click.option(
    "--log-dir",
    "--logdir",
    "log_dir",
    type=Directory(remote=True),
    help="Add the patches to this run for TensorBoard, or begin a run there.",
)
@png_folder
@step("Number of the step for TensorBoard: how far the network was trained.")
@input_size
@preprocessing_options
@batch_size
@device
def patches_command(**options: Any) -> None:
    """Find the parts of IMAGES (files or folders) that excite each channel of a network most.

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Each image runs once. Without --log-dir and --out, both are written below runs/patches.
    """
    from fmapboard.cli.search_images import Request, search_images

    search_images(Request(**options))
