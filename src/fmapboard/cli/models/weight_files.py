"""Read checkpoint files of torch and safetensors, whole or in shards."""

from __future__ import annotations

import json
import pickle
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from fmapboard.cli.missing_files import instead_of_data, nearby
from fmapboard.cli.models.messages import few, one_line
from fmapboard.cli.models.slow_loading import loading
from fmapboard.cli.models.stand_ins import CodeInFile, load_with_stand_ins, modules_in
from fmapboard.errors import CheckpointError, optional

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
    _check_exists(path)
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


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise CheckpointError(f"no such checkpoint: {str(path)!r}{nearby(path)}")


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
        if packages := {name.partition(".")[0] for name in error.names if _is_module(name)}:
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


def _is_module(name: str) -> bool:
    return _MODULE_CODE.match(name) is not None


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
