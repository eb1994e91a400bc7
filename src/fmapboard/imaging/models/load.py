"""Load the model that a command-line argument names, with its preprocessing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from fmapboard.demo.network import CLASSES, MEAN, STD, DemoNetwork, load_trained
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.imaging.models.checkpoints import load_checkpoint
from fmapboard.imaging.models.huggingface import build_huggingface, labels_of
from fmapboard.imaging.models.preprocessing import Preprocessing, assumed, changed
from fmapboard.imaging.models.pretrained import build_timm, build_torchvision, torchvision_names
from fmapboard.imaging.models.request import LoadedModel, ModelRequest, call_factory

_DEMO_SIDE = 128
"""Side of the demo network's input, px. It is trained on smaller crops but takes any size."""


def load_model(request: ModelRequest) -> LoadedModel:
    """Load a model, in eval mode, with its preprocessing.

    Raises:
        UnknownModel: no model has that name.
        ConfigurationError: the model cannot be built, or does not take images; or options exclude
            each other.
        DownloadError: the pretrained weights could not be downloaded or loaded.
        CheckpointError: the file or folder cannot be read, or does not fit the model.
        MissingExtra: timm or transformers is needed and not installed.
    """
    if request.input_size is not None and (request.resize, request.crop) != (None, None):
        raise ConfigurationError("--input-size excludes --resize and --crop")
    request = _with_weights_as_checkpoint(request)
    file = request.checkpoint
    if request.checkpoint_key is not None and file is None:
        raise ConfigurationError("--checkpoint-key selects part of a file; give --checkpoint FILE")
    built = _built(request)
    report = built.report
    if file is not None:
        report = load_checkpoint(built.model, file, key=request.checkpoint_key)
    preprocessing = built.preprocessing
    if request.input_size is not None:
        preprocessing = preprocessing.with_input_size(request.input_size)
    preprocessing = changed(
        preprocessing,
        mean=request.mean, std=request.std, resize=request.resize, crop=request.crop,
    )  # fmt: skip
    classes = built.classes if request.fetches else ()
    return LoadedModel(built.model.eval(), request.spec, preprocessing, report, classes)


def _with_weights_as_checkpoint(request: ModelRequest) -> ModelRequest:
    """The request with a file of ``weights`` as its checkpoint."""
    weights = {"default": "DEFAULT", "none": "none"}.get(request.weights.lower(), request.weights)
    if weights in ("DEFAULT", "none") or not Path(weights).is_file():
        return replace(request, weights=weights)
    if request.checkpoint is not None:
        raise ConfigurationError(
            f"two weights files: {weights!r} and {str(request.checkpoint)!r}; give only one"
        )
    return replace(request, weights="DEFAULT", checkpoint=Path(weights))


def _built(request: ModelRequest) -> LoadedModel:
    """Build the model, with its pretrained weights if it has any and they are asked for."""
    name = request.call.name
    is_bare = ":" not in name and name != "demo"
    is_network = is_bare and name.lower() in torchvision_names()
    is_folder = is_bare and not is_network and Path(name).expanduser().is_dir()
    if is_bare and not is_folder:
        return build_torchvision(request)
    if request.weights not in ("DEFAULT", "none"):
        raise ConfigurationError(
            f"no weights {request.weights!r} for {name!r}: neither a file nor one of DEFAULT, none"
        )
    if name == "demo":
        if request.call.kwargs:
            raise ConfigurationError("the demo network takes no --model-arg")
        model = DemoNetwork() if request.weights == "none" else load_trained()
        return LoadedModel(model, request.spec, demo_preprocessing(), classes=CLASSES)
    if name.startswith("timm:"):
        return build_timm(request)
    if name.startswith("hf:") or is_folder:
        return build_huggingface(request)
    own = call_factory(request.call)
    recipe = assumed(own, has_inputs=bool(request.inputs))
    return LoadedModel(own, request.spec, recipe, classes=labels_of(own))


def demo_preprocessing() -> Preprocessing:
    """The demo network's preprocessing: mean and std of its training crops, but a larger size."""
    side = (_DEMO_SIDE, _DEMO_SIDE)
    return Preprocessing(side, _DEMO_SIDE, MEAN, STD, source="the demo network's own")


def device_named(name: str) -> torch.device:
    """The torch device with this name.

    Raises:
        ConfigurationError: it cannot be used.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigurationError(
            f"--device {name!r} cannot be used: {first_line(error)}"
        ) from error
    return device
