"""``visualize --list``: print the table of a model's layers."""

from __future__ import annotations

from pathlib import Path

from fmapboard.cli.forward_inputs import ForwardInputs
from fmapboard.cli.images import read_fitted
from fmapboard.cli.models.load import LoadedModel
from fmapboard.cli.table import console
from fmapboard.cli.terminal import say_model, what_ran
from fmapboard.extraction.layer_table import layers
from fmapboard.model.layers import Layers


def print_layers(
    loaded: LoadedModel, path: Path | None, chosen: Layers, inputs: ForwardInputs
) -> None:
    """Print the table of layers; with output shapes if there is an image to run the model on.

    Args:
        loaded: The model.
        path: The image.
        chosen: Which layers, as ``only`` of ``layers``.
        inputs: What the model takes in addition to the image.

    Raises:
        FmapboardError: The model cannot run on the image.
    """
    if path is None:
        console().out(layers(loaded.model, only=chosen))
        return
    inputs.check(loaded.model)
    say_model(loaded, stderr=True)
    prepare = loaded.preprocessing
    image = prepare.normalize(read_fitted(path, prepare.fit))
    with what_ran(), inputs.applied(loaded.model):
        console().out(layers(loaded.model, image[None], only=chosen))
