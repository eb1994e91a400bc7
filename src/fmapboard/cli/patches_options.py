"""The options of ``fmapboard patches``; torch is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fmapboard.cli.click_types import HELP, command_with
from fmapboard.cli.completion import ModelName
from fmapboard.cli.preprocessing_options import preprocessing_options
from fmapboard.cli.run_dirs import Directory
from fmapboard.cli.shared_options import checkpoint_key, forward_arg, model_arg

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
    type=ModelName(),
    required=True,
    help="The network: as --model of visualize.",
)
@model_arg
@forward_arg
@click.option(
    "--weights",
    default="DEFAULT",
    show_default=True,
    help="DEFAULT (pretrained, downloaded if needed), none (random), a weights file, or the "
    "name of torchvision weights.",
)
@click.option(
    "--checkpoint", type=_EXISTING, help="Load weights from this file, folder or index of shards."
)
@checkpoint_key
@click.option(
    "--layers",
    multiple=True,
    metavar="GLOB",
    help="Layers to search, such as 'layer1.*'.  [default: all convolutions] Repeatable.",
)
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
@click.option("--out", type=Directory(remote=False), help="Write PNG files into this folder.")
@click.option(
    "--step",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Number of the step for TensorBoard: how far the network was trained.",
)
@click.option("--input-size", type=click.IntRange(min=1), help="Side of the square input in px.")
@preprocessing_options
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Maximum number of images per forward pass.",
)
@click.option("--device", default="cpu", show_default=True, help="Torch device, such as cuda:0.")
def patches_command(**options: Any) -> None:
    """Find the parts of IMAGES (files or folders) that excite each channel of a network most.

    Each image runs once. Without --log-dir and --out, both are written below runs/patches.
    """
    from fmapboard.cli.search_images import Request, search_images

    search_images(Request(**options))
