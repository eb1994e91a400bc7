"""The commands that run a network: their options; torch is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from fmapboard import __version__
from fmapboard.cli.options import (
    EXISTING,
    Palette,
    batch_size,
    checkpoint_key,
    command,
    device,
    forward_arg,
    input_option,
    input_size,
    judged,
    layers,
    log_directory_option,
    model_arg,
    png_folder,
    preprocessing_options,
    step,
    weights,
)

COMMON = (
    *("--model", "--weights", "--checkpoint", "--logdir", "--out", "--html", "--layers"),
    *("--list", "--samples", "--attribution", "--device"),
)
"""The options that ``--help`` and the documentation list first."""


@command(
    "visualize photo.jpg --model resnet34 --logdir runs/x --out maps",
    "Draw a network's feature maps for images.",
    common=COMMON,
)
@click.argument("images", nargs=-1, type=EXISTING)
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
    type=EXISTING,
    help="Load weights from this file, folder of shards or index of shards; a glob such as "
    "'ckpt_*.pt' makes one step per checkpoint.",
)
@checkpoint_key
@log_directory_option("Write TensorBoard event files into this run directory.")
@png_folder
@click.option(
    "--html", type=EXISTING, help="Write one HTML file that opens without TensorBoard, a report."
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
    from fmapboard.cli.model_request import ModelRequest, taken
    from fmapboard.cli.visualize import visualize_images
    from fmapboard.imaging.drawing import Drawing

    request, drawing = taken(ModelRequest, options), taken(Drawing, options)
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
@log_directory_option(
    "Write the runs a, b and difference for TensorBoard into this directory.",
    remote=False,
    name="log_dir",
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
    from fmapboard.cli.diff_checkpoints import diff_checkpoints
    from fmapboard.cli.model_request import ModelRequest, taken

    request = taken(ModelRequest, options)
    context.exit(judged(lambda: diff_checkpoints(request, **options)))


@command(
    "fmapboard patches photos/ --model resnet18 --layers 'layer2.*' --out patches",
    "Find the parts of images that excite each channel most.",
    name="patches",
)
@click.argument("images", nargs=-1, required=True, type=EXISTING)
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
    "--checkpoint", type=EXISTING, help="Load weights from this file, folder or index of shards."
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
    callback=lambda context, option, given: given or None,
    help="Search the first N channels of each layer; 0 for all.",
)
@click.option(
    "--several-per-image",
    "one_per_image",
    is_flag=True,
    callback=lambda context, option, given: not given,
    help="Take the largest values of all positions.  [default: at most one crop of an image]",
)
@log_directory_option(
    "Add the patches to this run for TensorBoard, or begin a run there.", name="log_dir"
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
    from fmapboard.cli.model_request import ModelRequest, taken
    from fmapboard.cli.patches import search_images

    search_images(taken(ModelRequest, options), **options)
