"""Load the model that a command-line argument names, with its preprocessing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
import torchvision.models

from fmapboard.demo.network import CLASSES, MEAN, STD, load_trained
from fmapboard.errors import CheckpointError, ConfigurationError, first_line, nearby
from fmapboard.imaging.models.checkpoints import load_checkpoint
from fmapboard.imaging.models.factory import call_factory
from fmapboard.imaging.models.huggingface import build_huggingface, is_path, is_saved_model
from fmapboard.imaging.models.preprocessing import Preprocessing, assumed, changed
from fmapboard.imaging.models.pretrained import build_timm, build_torchvision
from fmapboard.imaging.models.request import LoadedModel, ModelRequest, labels_of

_DEMO_SIDE = 128
"""Side of the demo network's input, px. It is trained on smaller crops but takes any size."""

_WEIGHT_SUFFIXES = frozenset({".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".tar"})


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
    sized = [f"--{name}" for name in ("resize", "crop") if getattr(request, name) is not None]
    if request.input_size is not None and sized:
        raise ConfigurationError(f"--input-size and {sized[0]} are mutually exclusive")
    file, weights = _weights_file(request.weights, request.checkpoint)
    if request.checkpoint_key is not None and file is None:
        raise ConfigurationError("--checkpoint-key selects part of a file; give --checkpoint FILE")
    built = _built(replace(request, checkpoint=file, weights=weights))
    model, preprocessing, report = built.model, built.preprocessing, built.report
    if file is not None:
        report = load_checkpoint(model, file, key=request.checkpoint_key)
    if request.input_size is not None:
        preprocessing = preprocessing.with_input_size(request.input_size)
    preprocessing = changed(
        preprocessing,
        mean=request.mean, std=request.std, resize=request.resize, crop=request.crop,
    )  # fmt: skip
    classes = built.classes if request.checkpoint is None and weights != "none" else ()
    return LoadedModel(model.eval(), request.spec, preprocessing, report, classes)


def _built(request: ModelRequest) -> LoadedModel:
    """Build the model, with its pretrained weights if it has any and they are asked for."""
    call = request.call
    folder = _is_folder(call.name)
    if ":" not in call.name and call.name != "demo" and not folder:
        return build_torchvision(request)
    if request.weights not in ("DEFAULT", "none"):
        raise ConfigurationError(
            f"no weights {request.weights!r} for {call.name!r}: neither a file nor one of "
            "DEFAULT, none"
        )
    if call.name == "demo":
        return _build_demo(request)
    if call.name.startswith("timm:"):
        return build_timm(request)
    if call.name.startswith("hf:") or folder:
        return build_huggingface(request)
    model = call_factory(call)
    recipe = assumed(model, has_inputs=bool(request.inputs))
    return LoadedModel(model, request.spec, recipe, classes=labels_of(model))


def _is_folder(spec: str) -> bool:
    """True if a spec without a prefix is a folder; the name of a network goes first."""
    if ":" in spec or spec == "demo" or spec.lower() in torchvision.models.list_models():
        return False
    return is_path(spec) or is_saved_model(spec)


def _weights_file(weights: str, checkpoint: Path | None) -> tuple[Path | None, str]:
    """The weights file (or None) and the name of the weights, from the two options."""
    known = {"default": "DEFAULT", "none": "none"}.get(weights.lower())
    if known is not None:
        return checkpoint, known
    path = Path(weights)
    if not path.is_file():
        if path.suffix.lower() in _WEIGHT_SUFFIXES:
            raise CheckpointError(f"no such weights file: {weights!r}{nearby(path)}")
        return checkpoint, weights
    if checkpoint is not None:
        raise ConfigurationError(
            f"two weights files: {weights!r} and {str(checkpoint)!r}; give only one"
        )
    return path, "DEFAULT"


def _build_demo(request: ModelRequest) -> LoadedModel:
    if request.call.kwargs:
        raise ConfigurationError("the demo network takes no --model-arg")
    model = load_trained()
    if request.weights == "none":
        for layer in model.modules():
            if callable(reset := getattr(layer, "reset_parameters", None)):
                reset()
    return LoadedModel(model, request.spec, demo_preprocessing(), classes=CLASSES)


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
