"""The options of ``visualize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fmapboard import __version__
from fmapboard.cli.click_types import HELP, Palette, command_with
from fmapboard.cli.preprocessing_options import preprocessing_options
from fmapboard.cli.run_dirs import Directory
from fmapboard.cli.shared_options import (
    batch_size,
    checkpoint_key,
    device,
    forward_arg,
    input_option,
    input_size,
    layers,
    model_arg,
    png_folder,
    step,
    weights,
)

COMMON = (
    *("--model", "--weights", "--checkpoint", "--logdir", "--out", "--html", "--layers"),
    *("--list", "--samples", "--attribution", "--device"),
)
"""The options that ``--help`` and the documentation list first."""

_EXISTING = click.Path(path_type=Path)


@click.command(
    cls=command_with("visualize photo.jpg --model resnet34 --logdir runs/x --out maps", COMMON),
    context_settings=HELP,
    short_help="Draw a network's feature maps for images.",
)
@click.argument("images", nargs=-1, type=_EXISTING)
@click.option(
    "--model",
    "spec",
    default="demo",
    show_default=True,
    help="A torchvision name, timm:NAME, hf:NAME (Hugging Face), a folder of save_pretrained, "
    "package.module:callable, or demo, the bundled network; arguments as in "
    "'package.module:Net(width=64)'.",
)
@model_arg
@forward_arg
@input_option
@weights
@click.option(
    "--checkpoint",
    type=_EXISTING,
    help="Load weights from this file, folder of shards or index of shards; a glob such as "
    "'ckpt_*.pt' makes one step per checkpoint.",
)
@checkpoint_key
@click.option(
    "--logdir",
    "--log-dir",
    type=Directory(remote=True),
    help="Write TensorBoard event files into this run directory.",
)
@png_folder
@click.option(
    "--html", type=_EXISTING, help="Write one HTML file that opens without TensorBoard, a report."
)
@step("Number of the first image's step; the others follow.")
@layers("Layers to draw, such as 'layer1.*'; '!*.downsample.*' excludes layers.")
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the layers and draw nothing; with IMAGES, also the shapes that they return.",
)
@input_size
@preprocessing_options
@click.option("--samples", type=click.IntRange(min=1), help="Draw only the first N images.")
@batch_size
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
@click.option(
    "--labels",
    is_flag=True,
    help="Write the layer's name and the channels' numbers into the PNG files.",
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
@click.option(
    "--silence",
    multiple=True,
    metavar="LAYER:CHANNELS",
    help="Set channels of a layer to 0, such as layer1.0.conv1:3,17. Repeatable.",
)
@click.option(
    "--effective", is_flag=True, help="Draw what the next layer receives, after forward hooks."
)
@click.option(
    "--embedding",
    metavar="LAYER",
    help="Also write this layer's output for each image, averaged over space, with thumbnails "
    "for TensorBoard's Projector.",
)
@device
@click.version_option(__version__, prog_name="visualize (fmapboard)")
def visualize(**options: Any) -> None:
    """Draw the feature maps of a network for each of IMAGES (files or folders).

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Without IMAGES, a bundled photograph is used. Without --logdir and --out, both are written
    below runs/visualize.
    """
    from fmapboard.cli.visualize import Request, visualize_images

    visualize_images(Request.of(**options))
