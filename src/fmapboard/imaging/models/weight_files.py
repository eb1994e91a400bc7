"""Read checkpoint files of torch and safetensors, whole or in shards, and run no code in them.

Training scripts store their settings next to the weights: ``argparse.Namespace``, paths, a
configuration class. Each class that such a file names is replaced by an empty stand-in class of
the same name; the real class is never imported. torch's ``weights_only`` unpickler does the rest.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import shlex
import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from fmapboard.errors import CheckpointError, nearby, optional
from fmapboard.imaging.messages import few, instead_of_data, one_line
from fmapboard.imaging.models.slow_loading import loading

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d+)-of-(?P<count>\d+)(?P<suffix>\.\w+)")
"""Hugging Face's file names for the shards of a checkpoint."""

_IN_FOLDER = (
    *("model.safetensors.index.json", "model.safetensors"),
    *("diffusion_pytorch_model.safetensors.index.json", "diffusion_pytorch_model.safetensors"),
    *("pytorch_model.bin.index.json", "pytorch_model.bin"),
)
"""File names of the weights in a folder, in order of preference."""

_MODULE_CODE = re.compile(r"torch\.nn\.modules\.|(?:ultralytics|models)\.")
"""Classes that occur only in files with a whole pickled model."""


def read_file(path: Path) -> Mapping[str, Any]:
    """Read a checkpoint, on the CPU: named tensors, or dictionaries of them and other data.

    Args:
        path: a ``torch.save`` file; a safetensors file, whose name ends in ``.safetensors``; an
            index of shards (``….index.json``); one of several shards, which are all read; or a
            folder in which Hugging Face saved a model.

    Raises:
        CheckpointError: the file is missing, empty, truncated or not a checkpoint, holds a whole
            model, or calls functions that could run code.
        MissingExtra: it is a safetensors file and safetensors is not installed.
    """
    files = _files(path)
    with loading(path):
        parts = [
            _read_safetensors(file) if file.suffix == ".safetensors" else _read_torch(file)
            for file in files
        ]
    if len(parts) == 1:
        return parts[0]  # not copied: torch keeps the layers' versions in an attribute of it
    return {name: value for part in parts for name, value in part.items()}


def _files(path: Path) -> list[Path]:
    """The files of a checkpoint, all checked to exist."""
    if not path.exists():
        raise CheckpointError(f"no such checkpoint: {str(path)!r}{nearby(path)}")
    if path.is_dir():
        path = _in_folder(path)
    if path.name.endswith(".index.json"):
        files = _indexed(path)
    elif shard := _SHARD.fullmatch(path.name):
        count = int(shard["count"])
        numbers = [f"{number:0{len(shard['number'])}d}" for number in range(1, count + 1)]
        parts = (f"{shard['stem']}-{n}-of-{shard['count']}{shard['suffix']}" for n in numbers)
        files = [path.with_name(part) for part in parts]
    else:
        files = [path]
    for file in files:
        if file != path and not file.is_file():
            raise CheckpointError(
                f"{str(path)!r} is incomplete: its shard {file.name!r} is missing"
            )
        _check_regular(file)
    return files


def _in_folder(folder: Path) -> Path:
    for name in _IN_FOLDER:
        if (folder / name).is_file():
            return folder / name
    if (folder / ".metadata").is_file():
        raise CheckpointError(
            f"{str(folder)!r} is a distributed checkpoint; convert it with: python -m "
            f"torch.distributed.checkpoint.format_utils dcp_to_torch {folder} {folder.name}.pt"
        )
    raise CheckpointError(
        f"{str(folder)!r} is a folder, not a checkpoint file; "
        f"a folder must hold {', '.join(_IN_FOLDER[:2])} or the like"
    )


def _indexed(index: Path) -> list[Path]:
    """The shards that an index lists; they must be in the same folder."""
    _check_regular(index)
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{str(index)!r} is not an index of shards: no weight_map") from error
    if any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise CheckpointError(f"{str(index)!r} lists shards outside of its folder")
    return [index.with_name(name) for name in sorted(names)]


def _check_regular(path: Path) -> None:
    if not path.is_file():
        raise CheckpointError(f"{str(path)!r} is not a regular file (a pipe or a device?)")
    if path.stat().st_size == 0:
        raise CheckpointError(f"the checkpoint {str(path)!r} is empty: 0 bytes")


def _read_safetensors(path: Path) -> Mapping[str, Any]:
    library = optional("safetensors.torch", extra="safetensors", why=f"reading {str(path)!r}")
    try:
        loaded: dict[str, Any] = library.load_file(str(path), device="cpu")
    except Exception as error:  # safetensors raises its own type, and OSError
        raise _not_a_checkpoint(path, error) from error
    return loaded


def _read_torch(path: Path) -> Mapping[str, Any]:
    try:
        raw = load_with_stand_ins(path)
    except CodeInFile as error:
        if packages := {name.partition(".")[0] for name in error.names if _MODULE_CODE.match(name)}:
            raise _whole_model(path, packages, None) from error
        raise CheckpointError(
            f"{str(path)!r} holds more than weights ({error.name}) and is not loaded, as that "
            "could run code; save only the weights: torch.save(model.state_dict(), file)"
        ) from error
    except Exception as error:  # an unpickler may raise anything for a damaged file
        raise _not_a_checkpoint(path, error) from error
    for index, module in modules_in(raw):
        if not _has_tensors(raw):
            raise _whole_model(path, {module.package}, index)
    if not isinstance(raw, Mapping):
        raise CheckpointError(
            f"{str(path)!r} holds a {type(raw).__name__}, not a state dict; "
            "save one with torch.save(model.state_dict(), file)"
        )
    return raw


def _has_tensors(raw: Any) -> bool:
    """True if a checkpoint has tensors at its top level or one dictionary deep."""
    if not isinstance(raw, Mapping):
        return False
    parts = [raw, *(value for value in raw.values() if isinstance(value, Mapping))]
    return any(isinstance(value, Tensor) for part in parts for value in part.values())


def _whole_model(path: Path, packages: Iterable[str], index: str | None) -> CheckpointError:
    """The error for a pickled model, whose loading would import and run its package's code.

    Args:
        path: the file.
        packages: the packages of the model's classes.
        index: the model's index in the file, such as ``"['model']"``; None if it is not known.
    """
    names = sorted(set(packages) - {"torch", "__main__"})
    target = path.with_name(f"{path.stem}_weights.pt")
    lines = [
        "import torch",
        f"m = torch.load({str(path)!r}, weights_only=False){index or ''}",
        *(["m = (m.get('ema') or m['model']) if isinstance(m, dict) else m"] * (index is None)),
        f"torch.save(m.state_dict(), {str(target)!r})",
    ]
    program = "; ".join(lines)
    quoted = shlex.quote(program) if re.search(r'[$`"\\!]', program) else f'"{program}"'
    of, where = (f" of {few(names)}", f" where {names[0]!r} is installed") if names else ("", "")
    return CheckpointError(
        f"{str(path)!r} holds a whole pickled model{of}, which is not loaded, as that runs code. "
        f"If you trust the file, convert it{where}: python -c {quoted}"
    )


def _not_a_checkpoint(path: Path, error: Exception) -> CheckpointError:
    if text := instead_of_data(path):
        return CheckpointError(f"{str(path)!r} is {text}")
    # If the file is not a pickle, torch raises a page about trust, or just "KeyError: 101".
    unhelpful = isinstance(error, (pickle.UnpicklingError, LookupError, ValueError))
    reason = "not a torch.save file" if unhelpful else one_line(error)
    return CheckpointError(
        f"{str(path)!r} is not a checkpoint, or is truncated or damaged ({reason})"
    )


_HARMLESS = re.compile(
    r"(?:argparse|pathlib|datetime|collections|numpy|decimal|fractions|uuid)\b.*"
    r"|copyreg\._reconstructor|functools\.partial|types\.SimpleNamespace"
    r"|builtins\.(?:bool|dict|float|frozenset|getattr|int|list|object|range|slice|str|tuple)"
)
"""Callables that a file may name; they are not called, the result is a stand-in."""

_UNKNOWN = re.compile(r"Unsupported global: GLOBAL (?P<name>[\w.]+)")
_CONTAINER = re.compile(r"Can only (?P<how>SETITEM|append|extend).*got <class '(?P<name>[\w.]+)'>")
_NOT_BUILT = re.compile(
    r"GLOBAL (?P<name>[\w.]+)|TorchScript|Can only|unrecognized func|Only persistent_load"
)
"""torch's errors for a file with objects that are not tensors, numbers, text or containers."""


class CodeInFile(Exception):
    """Loading the file would call a function that could run code; it was not called.

    Args:
        name: the callable, such as ``"os.system"``.
        names: the classes and functions that the file names, as far as it was read.
    """

    def __init__(self, name: str, names: Collection[str] = ()) -> None:
        super().__init__(name)
        self.name, self.names = name, frozenset(names)


class _StandInType(type):
    """Metaclass of stand-ins; calling one returns a stand-in or a plain container."""

    made: type = object
    """Type of the result: `object` for a stand-in, or a plain dictionary or list."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not _HARMLESS.fullmatch(name):
            raise CodeInFile(name)
        if name == "collections.defaultdict":
            return OrderedDict()
        return cls.__new__(cls)  # type: ignore[call-overload]  # the stand-in's `__new__`


class StandIn:
    """Takes the place of an object in a file, and holds its attributes."""

    state: Mapping[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, Mapping) else {}

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignored; torch before 2.7 sets items on the stand-in of a dictionary subclass."""

    @property
    def is_module(self) -> bool:
        """True if the object is a pickled `torch.nn.Module`."""
        return {"_modules", "_parameters"} <= getattr(self, "state", {}).keys()

    @property
    def package(self) -> str:
        """Top-level package of the object's class."""
        return type(self).__module__.partition(".")[0]


def load_with_stand_ins(path: Path) -> Any:
    """Load a ``torch.save`` file on the CPU; all objects but plain data become a `StandIn`.

    Plain data are tensors, numbers, text and containers of them.

    Raises:
        CodeInFile: loading the file would call a function that could run code.
        Exception: of any type, if the file is damaged or not a ``torch.save`` file.
    """
    types = {name: _stand_in(name) for name in _named_in(path)}
    while True:
        try:
            return _load(path, types)
        except CodeInFile as error:
            raise CodeInFile(error.name, types) from error
        except (pickle.UnpicklingError, RuntimeError) as error:
            if not _learnt(str(error), types):
                found = _NOT_BUILT.search(str(error))
                if found is None:
                    raise
                raise CodeInFile(found["name"] or "Python objects", types) from error


def _load(path: Path, types: Mapping[str, type]) -> Any:
    with warnings.catch_warnings(), safe_globals(list(types.values())):
        warnings.simplefilter("ignore")  # about old formats, which the user cannot change
        return torch.load(path, map_location="cpu", weights_only=True)


def _named_in(path: Path) -> Collection[str]:
    """The classes that a file in zip format names; `_learnt` finds those of the older format."""
    with contextlib.suppress(Exception):  # if the file is damaged, loading it raises as well
        return get_unsafe_globals_in_checkpoint(path)
    return ()


def _learnt(text: str, types: dict[str, _StandInType]) -> bool:
    """Add a stand-in for the class in torch's error; False if loading would fail again."""
    unknown, container = _UNKNOWN.search(text), _CONTAINER.search(text)
    if unknown is not None:
        names = {unknown["name"], f"builtins.{unknown['name']}"} - types.keys()
        types.update({name: _stand_in(name) for name in names})
        return bool(names)
    if container is None or types.get(container["name"]) is None:
        return False
    kind = OrderedDict if container["how"] == "SETITEM" else list
    changed = types[container["name"]].made is not kind
    types[container["name"]] = _stand_in(container["name"], kind)
    return changed


def _stand_in(name: str, made: type = object) -> _StandInType:
    module, _, qualname = name.rpartition(".")

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls) if made is object else made()

    body = {"__module__": module, "__qualname__": qualname, "__new__": new, "made": made}
    return _StandInType(qualname, (StandIn,), body)


def modules_in(raw: Any) -> Iterator[tuple[str, StandIn]]:
    """Pickled modules at the top level of a file or one dictionary deep, each with its index."""
    if isinstance(raw, StandIn) and raw.is_module:
        yield "", raw
    for key, value in raw.items() if isinstance(raw, Mapping) else ():
        if isinstance(value, StandIn) and value.is_module:
            yield f"[{key!r}]", value
