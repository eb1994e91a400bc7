"""Load the model that a command-line argument names, with its preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torchvision.models
from torch import nn

from fmapboard.demo.network import MEAN, STD, load_trained
from fmapboard.errors import CheckpointError, ConfigurationError, first_line
from fmapboard.imaging.missing_files import nearby
from fmapboard.imaging.models.checkpoints import LoadReport, load_checkpoint
from fmapboard.imaging.models.factory import (
    Arguments,
    Call,
    bind_forward,
    call_factory,
    parse_arguments,
    parse_call,
)
from fmapboard.imaging.models.huggingface import build_huggingface, is_path, is_saved_model
from fmapboard.imaging.models.preprocessing import Preprocessing, assumed, changed
from fmapboard.imaging.models.pretrained import Request, build_timm, build_torchvision, refuse_name
from fmapboard.model.layers import named_layers

__all__ = ["LoadedModel", "Preprocessing", "load_model"]

_DEMO_SIDE = 128
"""Side of the demo network's input, px. It is trained on smaller crops but takes any size."""

_WEIGHT_SUFFIXES = frozenset({".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".tar"})


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in eval mode on the CPU, with its preprocessing."""

    model: nn.Module
    name: str
    """As given on the command line, such as ``"resnet34"`` or ``"timm:convnext_tiny"``."""
    preprocessing: Preprocessing
    report: LoadReport | None = None
    """Which tensors were loaded, if the weights are from a file or from transformers; else None."""

    def not_loaded(self) -> dict[str, str]:
        """Layers with parameters that were not in the checkpoint.

        Returns:
            Name -> ``"random"`` if it has none of the checkpoint's, otherwise ``"partly random"``.
        """
        missing = set(self.report.missing if self.report is not None else ())
        named = list(self.model.named_parameters(remove_duplicate=False))
        loaded = {id(parameter) for name, parameter in named if name not in missing}
        if len(loaded) == len({id(parameter) for _, parameter in named}):
            return {}
        found = {}
        for name, module in named_layers(self.model).items():
            random = [id(parameter) not in loaded for parameter in module.parameters()]
            if any(random):
                found[name] = "random" if all(random) else "partly random"
        return found

    def preprocessed(self, **given: Any) -> LoadedModel:
        """The same model with other preprocessing; for the arguments and errors see `changed`."""
        return replace(self, preprocessing=changed(self.preprocessing, **given))


def load_model(
    spec: str,
    *,
    weights: str = "DEFAULT",
    checkpoint: Path | None = None,
    checkpoint_key: str | None = None,
    input_size: int | None = None,
    model_args: Sequence[str] = (),
    forward_args: Sequence[str] = (),
    has_inputs: bool = False,
) -> LoadedModel:
    """Load the model that ``spec`` names, in eval mode, with its preprocessing.

    Args:
        spec: ``"demo"`` (the bundled network), a torchvision name (``"resnet34"``), a timm name
            (``"timm:convnext_tiny"``), a folder that ``save_pretrained`` has written, ``"hf:"``
            followed by a Hugging Face hub name or a folder, or ``"package.module:callable"``; the
            callable is a `torch.nn.Module` or returns one. The current folder is importable.
            Literals in parentheses are arguments of the constructor, such as
            ``"my_package.unet:UNet(n_classes=2)"``.
        weights: ``"DEFAULT"`` (pretrained, downloaded if needed), ``"none"`` (random; a callable's
            model keeps the weights it has), a file, or a torchvision name such as
            ``"IMAGENET1K_V2"``.
        checkpoint: a weights file, or a folder or index of shards; if given, no weights are
            downloaded.
        checkpoint_key: which weights to load if the checkpoint holds several, such as
            ``"state_dict_ema"``.
        input_size: the side of the square input, px; None for the size that the weights expect.
        model_args: ``NAME=VALUE``, keyword arguments for the constructor.
        forward_args: ``NAME=VALUE``, keyword arguments for every call of ``forward``.
        has_inputs: the model is called with more than images.

    Raises:
        UnknownModel: no model has that name.
        ConfigurationError: the model cannot be built, or does not take images.
        DownloadError: the pretrained weights could not be downloaded or loaded.
        CheckpointError: the file or folder cannot be read, or does not fit the model.
        MissingExtra: timm or transformers is needed and not installed.
    """
    file, weights = _weights_file(weights, checkpoint)
    if checkpoint_key is not None and file is None:
        raise ConfigurationError("--checkpoint-key selects part of a file; give --checkpoint FILE")
    if input_size is not None and input_size < 1:
        raise ConfigurationError(f"the input size must be at least 1 pixel, not {input_size}")
    call, arguments = _arguments(spec, parse_arguments(model_args, "--model-arg"))
    request = Request(call.name, weights, file, input_size, arguments, call.args, has_inputs)
    model, preprocessing, report = _build(request)
    if file is not None:
        report = load_checkpoint(model, file, key=checkpoint_key)
    bind_forward(model, parse_arguments(forward_args, "--forward-arg"))
    if input_size is not None:
        preprocessing = preprocessing.with_input_size(input_size)
    return LoadedModel(model.eval(), spec, preprocessing, report)


def _build(request: Request) -> tuple[nn.Module, Preprocessing, LoadReport | None]:
    """Build the model; returns it, its preprocessing, and transformers' report on the weights."""
    folder = _is_folder(request.spec)
    if ":" not in request.spec and request.spec != "demo" and not folder:
        return *build_torchvision(request), None
    refuse_name(request)
    if request.spec == "demo":
        return *_build_demo(request), None
    if request.spec.startswith("timm:"):
        return *build_timm(request), None
    if request.spec.startswith("hf:") or folder:
        return build_huggingface(request)
    model = call_factory(request.spec, request.arguments, request.positional)
    return model, assumed(model, has_inputs=request.has_inputs), None


def _arguments(spec: str, model_args: Arguments) -> tuple[Call, Arguments]:
    """The call that a spec is, and all keyword arguments of the constructor."""
    call = Call(spec) if Path(spec).exists() else parse_call(spec)
    twice = sorted(call.kwargs.keys() & model_args.keys())
    if twice:
        raise ConfigurationError(f"{twice[0]!r} is given twice: in {spec!r} and as --model-arg")
    prefix, colon, _ = call.name.partition(":")
    if call.args and (not colon or prefix in ("timm", "hf")):
        raise ConfigurationError(
            f"{spec!r}: write every argument with its name, such as {call.name}(num_classes=10)"
        )
    return call, {**call.kwargs, **model_args}


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


def _build_demo(request: Request) -> tuple[nn.Module, Preprocessing]:
    if request.arguments:
        raise ConfigurationError("the demo network takes no --model-arg")
    model = load_trained()
    if request.weights == "none":
        for layer in model.modules():
            if callable(reset := getattr(layer, "reset_parameters", None)):
                reset()
    return model, demo_preprocessing()


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
