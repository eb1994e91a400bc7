"""The commands that run a network: their options; torch is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from fmapboard import __version__
from fmapboard.cli.options import (
    EXISTING,
    checkpoint_key,
    command,
    device,
    forward_arg,
    input_option,
    judged,
    model_arg,
    options_of,
    preprocessing_options,
    taken,
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
@options_of("visualize", "log_dir", "out", "html", "step", "layers")
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the layers and draw nothing; with IMAGES, also the shapes that they return.",
)
@preprocessing_options
@click.option("--samples", type=click.IntRange(min=1), help="Draw only the first N images.")
@options_of("visualize", "batch_size", "colormap", "scale", "depth", "labels", "kernels")
@options_of("visualize", "attribution", "target")
@click.option(
    "--silence",
    "silenced",
    multiple=True,
    metavar="LAYER:CHANNELS",
    help="Set channels of a layer to 0, such as layer1.0.conv1:3,17. Repeatable.",
)
@options_of("visualize", "effective", "embedding")
@device
@click.version_option(__version__, prog_name="visualize (fmapboard)")
def visualize(**options: Any) -> None:
    """Draw the feature maps of a network for each of IMAGES (files or folders).

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Without IMAGES, a bundled photograph is used. Without --logdir and --out, both are written
    below runs/visualize.
    """
    from fmapboard.cli.commands.visualize import visualize_images
    from fmapboard.imaging.drawing import Drawing
    from fmapboard.imaging.models.request import ModelRequest

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
@options_of("diff", "tolerance")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with all layers.")
@options_of("diff", "out", "log_dir", "layers")
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
    from fmapboard.cli.commands.diff import diff_checkpoints
    from fmapboard.imaging.models.request import ModelRequest

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
@options_of("patches", "layers", "k", "channels", "one_per_image", "log_dir", "out", "step")
@preprocessing_options
@options_of("patches", "batch_size")
@device
def patches_command(**options: Any) -> None:
    """Find the parts of IMAGES (files or folders) that excite each channel of a network most.

    Folders are searched with their subfolders; unreadable files in them are left out and listed.
    Each image runs once. Without --log-dir and --out, both are written below runs/patches.
    """
    from fmapboard.cli.commands.patches import search_images
    from fmapboard.imaging.models.request import ModelRequest

    search_images(taken(ModelRequest, options), **options)
