"""Read checkpoint files of torch and safetensors, whole or in shards, and run no code in them.

Training scripts store their settings next to the weights: ``argparse.Namespace``, paths, a
configuration class, or the whole model. Each class that such a file names is replaced by an empty
stand-in class of the same name; the real class is never imported. torch's ``weights_only``
unpickler does the rest.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from fmapboard.errors import CheckpointError, instead_of_data, nearby, one_line, optional

_IN_FOLDER = (
    *("model.safetensors.index.json", "model.safetensors"),
    *("diffusion_pytorch_model.safetensors.index.json", "diffusion_pytorch_model.safetensors"),
    *("pytorch_model.bin.index.json", "pytorch_model.bin"),
)
"""File names of the weights in a folder, in order of preference."""

SECONDS = 60.0
"""Time after which a file that is still loading is named."""


def read_file(path: Path) -> Mapping[str, Any]:
    """Read a checkpoint, on the CPU: named tensors, or dictionaries of them and other data.

    Args:
        path: a ``torch.save`` file; a safetensors file, whose name ends in ``.safetensors``; an
            index of shards (``….index.json``); or a folder in which Hugging Face saved a model.

    Raises:
        CheckpointError: the file is missing, truncated or not a checkpoint, or would have to run
            code.
        MissingExtra: it is a safetensors file and safetensors is not installed.
    """
    files = _files(path)
    text = f"still loading {str(path)!r} after {SECONDS:.0f} s; Ctrl-C stops it"
    timer = threading.Timer(SECONDS, print, [text], {"file": sys.stderr})
    timer.daemon = True
    timer.start()
    try:
        parts = [
            _read_safetensors(file) if file.suffix == ".safetensors" else _read_torch(file)
            for file in files
        ]
    finally:
        timer.cancel()
    if len(parts) == 1:
        return parts[0]  # not copied: torch keeps the layers' versions in an attribute of it
    return {name: value for part in parts for name, value in part.items()}


def _files(path: Path) -> list[Path]:
    """The files of a checkpoint, all checked to exist."""
    if not path.exists():
        advice = nearby(path) or "; check the path"
        raise CheckpointError(f"no such checkpoint: {str(path)!r}{advice}")
    if path.is_dir():
        known = [path / name for name in _IN_FOLDER if (path / name).is_file()]
        if not known:
            raise CheckpointError(
                f"{str(path)!r} is a folder, not a checkpoint file; "
                f"a folder must hold {', '.join(_IN_FOLDER[:2])} or the like"
            )
        path = known[0]
    files = _indexed(path) if path.name.endswith(".index.json") else [path]
    for file in files:
        if not file.is_file():
            raise CheckpointError(
                f"{str(file)!r} is missing, or is not a regular file; download or copy it again"
            )
    return files


def _indexed(index: Path) -> list[Path]:
    """The shards that an index lists, which are looked for in its own folder."""
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
        return [index.with_name(Path(name).name) for name in sorted(names)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{str(index)!r} is not an index of shards: no weight_map; give the file of weights, "
            "or the folder"
        ) from error


def _read_safetensors(path: Path) -> Mapping[str, Any]:
    library = optional("safetensors.torch", extra="safetensors", why=f"reading {str(path)!r}")
    try:
        return dict(library.load_file(str(path), device="cpu"))
    except Exception as error:  # safetensors raises its own type, and OSError
        raise _unreadable(path, error) from error


def _read_torch(path: Path) -> Mapping[str, Any]:
    try:
        raw = _weights_of(_unpickled(path))
        if isinstance(raw, Mapping) and any(isinstance(value, StandIn) for value in raw.values()):
            raw = {key: _weights_of(value) for key, value in raw.items()}
    except Exception as error:  # an unpickler may raise anything for a damaged file
        raise _unreadable(path, error) from error
    if not isinstance(raw, Mapping):
        raise CheckpointError(
            f"{str(path)!r} holds a {type(raw).__name__}, not a state dict; "
            "save one with torch.save(model.state_dict(), file)"
        )
    return raw


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    if text := instead_of_data(path):
        return CheckpointError(f"{str(path)!r} is {text}")
    # Around the reason, torch writes a page about trust.
    found = _REASON.search(str(error))
    return CheckpointError(
        f"{str(path)!r} is not a checkpoint, is damaged, or holds objects whose loading could run "
        f"code ({found[0] if found else one_line(error, most=120)}); save weights with "
        "torch.save(model.state_dict(), file)"
    )


_REASON = re.compile(r"(?:unsupported |Unsupported global: )GLOBAL [\w.]+|Unsupported operand \d+")


class StandIn:
    """Takes the place of an object in a file, and holds its attributes.

    Attributes:
        state: Its attributes by name.
    """

    state: Mapping[str, Any] = MappingProxyType({})

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, Mapping) else {}

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignored; torch before 2.7 sets items on the stand-in of a dictionary subclass."""


def _weights_of(value: Any) -> Any:
    """The tensors of a pickled module, named as in its state dict; another value as it is."""
    if not isinstance(value, StandIn) or "_parameters" not in value.state:
        return value
    own = {**value.state["_parameters"], **value.state["_buffers"]}
    left_out = value.state.get("_non_persistent_buffers_set", ())
    weights = {name: tensor for name, tensor in own.items() if name not in left_out}
    for name, module in value.state["_modules"].items():
        inside = _weights_of(module)
        if isinstance(inside, dict):
            weights |= {f"{name}.{key}": tensor for key, tensor in inside.items()}
    return weights


_CONTAINER = re.compile(r"Can only (?P<how>SETITEM|append|extend).*got <class '(?P<name>[\w.]+)'>")
"""torch's error for a stand-in of a subclass of `dict` or `list`."""


def _unpickled(path: Path) -> Any:
    """Load a ``torch.save`` file; all objects but plain data become a `StandIn`.

    Plain data are tensors, numbers, text and containers of them. Functions that the file calls are
    replaced as well, so that none of them runs.

    Raises:
        Exception: of any type, if the file is damaged or not a ``torch.save`` file.
    """
    kinds: dict[str, type] = dict.fromkeys(_named_in(path), StandIn)
    while True:
        types: list[Any] = [_stand_in(name, kind) for name, kind in kinds.items()]
        try:
            with warnings.catch_warnings(), safe_globals(types):
                warnings.simplefilter("ignore")  # about old formats, which the user cannot change
                return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            found = _CONTAINER.search(str(error))
            if found is None or kinds.get(found["name"]) is not StandIn:
                raise
            kinds[found["name"]] = OrderedDict if found["how"] == "SETITEM" else list


def _named_in(path: Path) -> Collection[str]:
    """The classes and functions that a file names; none for the format of torch before 1.6."""
    with contextlib.suppress(Exception):  # if the file is damaged, loading it raises as well
        return get_unsafe_globals_in_checkpoint(path)
    return ()


def _stand_in(name: str, kind: type) -> type:
    """A class of this name, whose calls return a `StandIn` of it, or a plain container."""
    module, _, qualname = name.rpartition(".")

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls) if kind is StandIn else kind()

    body = {"__module__": module, "__qualname__": qualname, "__new__": new}
    return type(qualname, (StandIn,), body)
