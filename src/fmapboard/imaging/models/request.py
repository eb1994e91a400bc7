"""Which model to load, with which arguments and preprocessing; the user's own callables."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from fmapboard.errors import ConfigurationError, UnknownModel, closest, one_line
from fmapboard.imaging.models.checkpoints import LoadReport
from fmapboard.imaging.models.preprocessing import Preprocessing, Size
from fmapboard.model.layers import named_layers


def call_factory(call: Call) -> nn.Module:
    """Import the callable that a call names, call it with the arguments, and return its model.

    The name may also be that of a `torch.nn.Module` instance. The current folder is importable, as
    with ``python -m``.

    Raises:
        UnknownModel: as for ``imported``.
        ConfigurationError: the module fails to import, or the callable fails or does not return a
            `torch.nn.Module`.
    """
    made = imported(call.name)
    if isinstance(made, nn.Module):
        if call.args or call.kwargs:
            raise ConfigurationError(
                f"{call.name!r} is already built and takes no arguments; name its class or a "
                "function"
            )
        return made
    try:
        model = made(*call.args, **call.kwargs)
    except (Exception, SystemExit) as error:  # the user's code
        advice = f'; arguments are written --model "{call.name}(NAME=VALUE)"'
        raise ConfigurationError(
            f"calling {call.name!r} failed: {one_line(error)}"
            f"{advice * isinstance(error, TypeError)}"
        ) from error
    if not isinstance(model, nn.Module):
        raise ConfigurationError(
            f"{call.name!r} returned a {type(model).__name__}, not a torch.nn.Module; name the "
            "network's class, or a function that returns one"
        )
    return model


def imported(spec: str, kind: str = "callable") -> Any:
    """What ``package.module:name`` names; the current folder is importable.

    Args:
        spec: The text.
        kind: What stands behind the colon, for the error.

    Raises:
        UnknownModel: there is no such module or attribute.
        ConfigurationError: the module fails to import.
    """
    module_name, _, attribute = spec.partition(":")
    names = [*module_name.split("."), *attribute.split(".")]
    if not all(name.isidentifier() for name in names):
        raise UnknownModel(
            f"{spec!r} is not written as package.module:{kind}, such as nets:Net for the file "
            "nets.py in the current folder"
        )
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # not removed: the model may import more when it runs
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything, or exit
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{module_name}.".startswith(f"{absent}."):
            raise UnknownModel(
                f"no module {absent!r} (for {spec!r}) in {here!r} or on Python's path; change to "
                "the folder that holds it, or set PYTHONPATH to that"
            ) from error
        raise ConfigurationError(
            f"importing {module_name!r} (for {spec!r}) failed: {one_line(error)}; for the "
            f'traceback, run: python -c "import {module_name}"'
        ) from error
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        public = [name for name in dir(module) if not name.startswith("_")]
        near = closest(attribute, public) or f"; name one that {module_name} defines"
        raise UnknownModel(f"{module_name!r} has no {attribute!r} (for {spec!r}){near}") from error


@dataclass(frozen=True, slots=True)
class Call:
    """A model's name and the arguments behind it.

    Attributes:
        name: What stands before the parentheses.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def parse_call(spec: str) -> Call:
    """Split a spec into the name and the literals behind it; nothing is evaluated.

    Numbers, text, True, False, None, and tuples, lists, sets and dictionaries of them are literals.

    >>> parse_call("my_package.unet:UNet(3, n_classes=2)")
    Call(name='my_package.unet:UNet', args=(3,), kwargs={'n_classes': 2})

    Raises:
        ConfigurationError: there is anything but literals in the parentheses.
    """
    name, opening, given = spec.partition("(")
    if not opening:
        return Call(spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in text, as of Windows paths
            call = ast.parse(f"call({given.strip()}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("something follows the call")
        args = tuple(map(ast.literal_eval, call.args))
        kwargs = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        if len(kwargs) < len(call.keywords) or "None" in kwargs:  # None for **
            raise ValueError("every keyword is given once, and ** is not supported")
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        shown = spec if len(spec) <= 80 else f"{spec[:80]}…"
        raise ConfigurationError(
            f"{shown!r}: {one_line(error, most=80)}; expected literals, with quotes around text, "
            "such as Net(3, width=64, norm='batch')"
        ) from error
    return Call(name.strip(), args, kwargs)


def parse_arguments(given: Sequence[str], option: str) -> dict[str, Any]:
    """Parse keyword arguments; a value that is not a Python literal is taken as a string.

    Example:
        >>> parse_arguments(["width=64", "norm=batch", "sizes=[1, 2]"], "--model-arg")
        {'width': 64, 'norm': 'batch', 'sizes': [1, 2]}

    Raises:
        ConfigurationError: an argument is not written as NAME=VALUE, or is given twice.
    """
    arguments: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError(f"{option} {text!r}: expected NAME=VALUE, such as width=64")
        if name in arguments:
            raise ConfigurationError(f"{option} {text!r}: {name!r} is given twice; give it once")
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            arguments[name] = value
    return arguments


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


class LoadedModel(NamedTuple):
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
