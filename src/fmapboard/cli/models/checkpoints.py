"""Loads weights from files into a model, without ever running code that a file carries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.cli.models.messages import few, one_line
from fmapboard.cli.models.state_dicts import Found, chosen, find
from fmapboard.cli.models.weight_files import read_file
from fmapboard.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How a checkpoint fitted a model; ``str()`` says it in one line."""

    missing: tuple[str, ...]
    """Names of the model that the file lacks: these keep the values they had."""
    unexpected: tuple[str, ...]
    """Names in the file that the model lacks: these were left out."""
    matched: int
    """How many of the model's tensors were loaded."""
    nonfinite: tuple[str, ...] = ()
    """Loaded tensors that hold NaN or infinity, each with its count; infinity in a buffer, such as
    an attention mask, is none."""
    place: str = ""
    """Where in the file the weights lay, if they do not make up the file."""
    others: tuple[str, ...] = ()
    """Where in the file other weights lie that fit as well."""

    def __str__(self) -> str:
        text = f"{self.matched} of {self.matched + len(self.missing)} tensors loaded"
        if self.others:
            text += f" from {self.place!r}; for others: --checkpoint-key {' or '.join(self.others)}"
        for word, names in (
            ("missing", self.missing),
            ("unexpected", self.unexpected),
            ("with NaN or infinity", self.nonfinite),
        ):
            if names:
                text += f"; {len(names)} {word}: {few(names)}"
        return text


def read_state_dict(
    path: Path, expected_keys: Collection[str] = (), *, key: str | None = None
) -> Found:
    """The tensors in a checkpoint by name, on the CPU, unwrapped as by `state_dicts.find`.

    Code inside the file never runs (see `weight_files.read_file`).

    Args:
        path: the file, or a folder or index of shards.
        expected_keys: names that tell which of several state dicts is meant.
        key: which part of the file, as `state_dicts.chosen` takes it.

    Raises:
        CheckpointError: the file is missing, empty, truncated, no checkpoint, asks for calls that
            could run code, or holds no tensors, or nothing under ``key``.
        MissingExtra: it is a safetensors file and safetensors is not installed.
    """
    raw = read_file(path)
    part = raw if key is None else chosen(raw, key)
    found = find(part, expected_keys)
    if not found.tensors:
        raise CheckpointError(f"{str(path)!r} holds no named tensors; its keys: {few(list(part))}")
    return found


def load_checkpoint(model: nn.Module, path: Path, *, key: str | None = None) -> LoadReport:
    """Load a file of weights into a model, and say what fitted.

    Args:
        model: takes the weights; must lie where they can be copied to.
        path: as in `read_state_dict`.
        key: which weights of a file that holds several, such as ``"state_dict_ema"``.

    Raises:
        CheckpointError: the file cannot be read (see `read_state_dict`), no name in it is the
            model's, or a tensor has another shape; the model is then as it was.
    """
    own = model.state_dict()
    found = read_state_dict(path, own.keys(), key=key)
    state = found.tensors
    _check_names(state, own, path)
    _check_shapes(state, own, path)
    # Layers look there for the version of the format; a file that says nothing is taken as new.
    versions = {**getattr(own, "_metadata", {}), **getattr(state, "_metadata", {})}
    state._metadata = versions  # type: ignore[attr-defined]  # where torch keeps it
    try:
        result = model.load_state_dict(state, strict=False)
    except Exception as error:  # a model's own loading hooks may raise anything
        raise CheckpointError(f"{str(path)!r} does not fit: {one_line(error)}") from error
    missing, unexpected = tuple(result.missing_keys), tuple(result.unexpected_keys)
    return LoadReport(
        missing,
        unexpected,
        matched=len(own) - len(missing),
        nonfinite=_nonfinite({name: state[name] for name in own if name in state}, model),
        place=found.place,
        others=found.others,
    )


def _nonfinite(state: Mapping[str, Tensor], model: nn.Module) -> tuple[str, ...]:
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    said = []
    for name, tensor in state.items():
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        bad = int((~tensor.isfinite() if name in parameters else tensor.isnan()).sum())
        if bad:
            said.append(f"{name} ({bad} of {tensor.numel()} values)")
    return tuple(said)


def _check_names(state: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path) -> None:
    if own.keys() & state.keys():
        return
    raise CheckpointError(
        f"{str(path)!r} does not fit: none of its {len(state)} names ({few(list(state), 2)}) "
        f"is one of the model's {len(own)} ({few(list(own), 2)})"
    )


def _check_shapes(state: Mapping[str, Tensor], own: Mapping[str, Any], path: Path) -> None:
    differing = [
        f"{name} is {_shape(state[name])} in the file and {_shape(own[name])} in the model"
        for name in own
        if name in state and not is_lazy(own[name]) and own[name].shape != state[name].shape
    ]
    if differing:
        raise CheckpointError(f"{str(path)!r} does not fit: {few(differing)}")


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a single number"
