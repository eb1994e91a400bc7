"""``--input``: further arguments of ``forward``, from files or from a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fmapboard.cli.forward_inputs import ForwardInputs
from fmapboard.cli.images import IMAGE_SUFFIXES
from fmapboard.cli.missing_files import nearby
from fmapboard.cli.models.factory import imported
from fmapboard.cli.models.messages import one_line
from fmapboard.cli.models.slow_loading import loading
from fmapboard.errors import CheckpointError, ConfigurationError
from fmapboard.model.tensors import tensors

_EXPECTED = "expected NAME=FILE, such as depth=depth.pt, or package.module:function"


def inputs_from(given: Sequence[str], images: int) -> ForwardInputs:
    """What the values of ``--input`` name.

    Args:
        given: ``NAME=FILE``, a tensor of ``torch.save`` or ``numpy.save``; or
            ``package.module:function``, at most once.
        images: Number of images.

    Raises:
        ConfigurationError: A value is invalid, or a tensor has another number of rows.
        CheckpointError: A file cannot be read. Code in it is not run.
        UnknownModel: There is no such function.
    """
    named: dict[str, Any] = {}
    function: Callable[[Tensor], Any] | None = None
    for text in given:
        name, equals, file = text.partition("=")
        if not equals:
            if function is not None:
                raise ConfigurationError(f"--input {text!r}: a function is given already")
            function = _function(text)
            continue
        if not name.isidentifier() or not file:
            raise ConfigurationError(f"--input {text!r}: {_EXPECTED}")
        if name in named:
            raise ConfigurationError(f"--input {text!r}: {name!r} is given twice")
        named[name] = _read(Path(file).expanduser(), text)
    inputs = ForwardInputs(named, function, images, option=True)
    inputs.check_rows()
    return inputs


def _function(text: str) -> Callable[[Tensor], Any]:
    if ":" not in text:
        raise ConfigurationError(f"--input {text!r}: {_EXPECTED}")
    function = imported(text, "function")
    if not callable(function):
        raise ConfigurationError(
            f"--input {text!r} is a {type(function).__name__}: expected a function that turns "
            "images [B, C, H, W] into the arguments of forward"
        )
    return function  # type: ignore[no-any-return]  # checked when it has returned


def _read(path: Path, text: str) -> Any:
    if not path.is_file():
        raise CheckpointError(f"--input {text!r}: no such file: {str(path)!r}{nearby(path)}")
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise ConfigurationError(
            f"--input {text!r} is an image: expected the tensor that forward takes, saved with "
            "torch.save(tensor, 'FILE.pt')"
        )
    try:
        with loading(path):
            value = _array(path) if path.suffix.lower() == ".npy" else _saved(path)
    except Exception as error:  # damaged files make the unpickler raise nearly anything
        raise CheckpointError(
            f"--input {text!r}: {str(path)!r} cannot be read as tensors; code in it is not run, "
            f"save them with torch.save(tensor, 'FILE.pt') ({one_line(error, most=80)})"
        ) from error
    if not tensors(value):
        raise CheckpointError(
            f"--input {text!r}: {str(path)!r} holds a {type(value).__name__} without tensors; for "
            "a number or text use --forward-arg NAME=VALUE"
        )
    return value


def _array(path: Path) -> Tensor:
    return torch.from_numpy(np.load(path, allow_pickle=False))


def _saved(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)
