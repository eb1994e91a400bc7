"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fmapboard.cli.run_dirs import Directory

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_arg = click.option(
    "--model-arg",
    "model_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument of the model's constructor, such as num_classes=10. Repeatable.",
)
forward_arg = click.option(
    "--forward-arg",
    "forward_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument that the model's forward takes in addition to the images. Repeatable.",
)
input_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="A tensor (torch.save, or .npy) that the model's forward takes in addition to the images; "
    "or package.module:function, which turns images into all arguments. Repeatable.",
)
checkpoint_key = click.option(
    "--checkpoint-key",
    metavar="NAME",
    help="Which weights to load if a checkpoint holds several, such as state_dict_ema.",
)
weights = click.option(
    "--weights",
    default="DEFAULT",
    show_default=True,
    help="DEFAULT (pretrained, downloaded if needed), none (random), a weights file, or the "
    "name of torchvision weights.",
)
png_folder = click.option(
    "--out", type=Directory(remote=False), help="Write PNG files into this folder."
)
input_size = click.option(
    "--input-size", type=click.IntRange(min=1), help="Side of the square input in px."
)
batch_size = click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Maximum number of images per forward pass; it does not change the result.",
)
device = click.option(
    "--device", default="cpu", show_default=True, help="Torch device, such as cuda:0."
)


def layers(text: str) -> Decorator:
    """``--layers``, repeatable.

    Args:
        text: what the layers are for, and the default.

    The value is that of `model.layers.select`: a list, or None if the option was not given.
    """
    return click.option(
        "--layers",
        multiple=True,
        metavar="GLOB",
        callback=lambda context, option, given: list(given) or None,
        help=f"{text} Repeatable.",
    )


def step(text: str) -> Decorator:
    """``--step``, 0 by default.

    Args:
        text: what the step is the number of.
    """
    return click.option(
        "--step", type=click.IntRange(min=0), default=0, show_default=True, help=text
    )
