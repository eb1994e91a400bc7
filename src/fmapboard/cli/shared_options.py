"""Options that several commands share."""

from __future__ import annotations

import click

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
