"""Which model to load and how its input is prepared, and the model that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from fmapboard.errors import ConfigurationError
from fmapboard.imaging.models.checkpoints import LoadReport
from fmapboard.imaging.models.factory import Call, parse_arguments, parse_call
from fmapboard.imaging.models.preprocessing import Preprocessing, Size
from fmapboard.model.layers import named_layers


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Which model to load and how its input is prepared, as the command line's options say it.

    The options are made of the fields: the first sentence of each is the help.

    Attributes:
        spec: A torchvision name, timm:NAME, hf:NAME (Hugging Face), a folder of save_pretrained,
            package.module:callable, or demo, the bundled network; arguments as in
            'package.module:Net(width=64)'. The callable is a `torch.nn.Module` or returns one. The
            current folder is importable. The arguments are literals.
        weights: DEFAULT (pretrained, downloaded if needed), none (random), a weights file, or the
            name of torchvision weights. With none, a callable's model keeps the weights it has.
        checkpoint: Load weights from this file, folder or index of shards. No others are then
            downloaded.
        checkpoint_key: Which weights to load if a checkpoint holds several, such as state_dict_ema.
        model_args: An argument of the model's constructor, such as num_classes=10.
        forward_args: An argument that the model's forward takes in addition to the images.
        inputs: A tensor (torch.save, or .npy) that the model's forward takes in addition to the
            images; or package.module:function, which turns images into all arguments. As
            `forward_inputs.inputs_from` reads it.
        input_size: Side of the square input in px. None for the size that the weights expect.
        mean: Subtracted per channel, for pixels from 0 to 1, such as 0.485,0.456,0.406.
        std: Divides each channel after that.
        resize: Shorter side in px, HEIGHTxWIDTH, or none to keep the image's size.
        crop: Centre crop after that: side in px, HEIGHTxWIDTH, or none.
        device: Torch device, such as cuda:0. The commands move the model to it.
    """

    spec: str = "demo"
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    checkpoint_key: str | None = None
    model_args: Sequence[str] = ()
    forward_args: Sequence[str] = ()
    inputs: Sequence[str] = ()
    input_size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    resize: Size | None = None
    crop: Size | None = None
    device: str = "cpu"

    @property
    def call(self) -> Call:
        """The model's name and all arguments of its constructor; ``model_args`` go first.

        Raises:
            ConfigurationError: They are invalid.
        """
        call = Call(self.spec) if Path(self.spec).exists() else parse_call(self.spec)
        prefix, colon, _ = call.name.partition(":")
        if call.args and (not colon or prefix in ("timm", "hf")):
            raise ConfigurationError(
                f"{self.spec!r}: write every argument with its name, such as "
                f"{call.name}(num_classes=10)"
            )
        given = parse_arguments(self.model_args, "--model-arg")
        return replace(call, kwargs={**call.kwargs, **given})

    @property
    def fetches(self) -> bool:
        """True if pretrained weights are to be loaded, from the cache or the internet."""
        return self.checkpoint is None and self.weights != "none"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in eval mode on the CPU, with its preprocessing.

    Attributes:
        model: The model.
        name: As given on the command line, such as ``"resnet34"`` or ``"timm:convnext_tiny"``.
        preprocessing: What its weights expect.
        report: Which tensors were loaded, if the weights are from a file or from transformers.
        classes: Names of the classes of its own pretrained weights, in order; empty if unknown.
    """

    model: nn.Module
    name: str
    preprocessing: Preprocessing
    report: LoadReport | None = None
    classes: Sequence[str] = ()

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
