"""Load weights from files into a model, without running any code in the files."""

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
    """Which tensors of a checkpoint were loaded into a model; ``str()`` is one line."""

    missing: tuple[str, ...]
    """Tensors of the model that are not in the file; they keep their values."""
    unexpected: tuple[str, ...]
    """Tensors in the file that are not in the model; they were ignored."""
    matched: int
    """Number of the model's tensors that were loaded."""
    nonfinite: tuple[str, ...] = ()
    """Loaded tensors with NaN or infinity, each with a count. Infinity in a buffer, such as an
    attention mask, does not count."""
    place: str = ""
    """Dotted key of the weights in the file; empty if they are the whole file."""
    others: tuple[str, ...] = ()
    """Dotted keys of other weights in the file that fit equally well."""

    def __str__(self) -> str:
        text = f"{self.matched} of {self.matched + len(self.missing)} tensors loaded"
        if self.others:
            others = " or ".join(self.others)
            text += f" from {self.place!r}; to load other weights: --checkpoint-key {others}"
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
    """The named tensors in a checkpoint, on the CPU, with plain names (see `state_dicts.find`).

    Code in the file is never run (see `weight_files.read_file`).

    Args:
        path: the file, or a folder or index of shards.
        expected_keys: the model's names, to choose among several state dicts in the file.
        key: dotted key of the part of the file to read, as for `state_dicts.chosen`.

    Raises:
        CheckpointError: the file is missing, empty, truncated or not a checkpoint, calls functions
            that could run code, or has no tensors or nothing under ``key``.
        MissingExtra: it is a safetensors file and safetensors is not installed.
    """
    raw = read_file(path)
    part = raw if key is None else chosen(raw, key)
    found = find(part, expected_keys)
    if not found.tensors:
        raise CheckpointError(f"no named tensors in {str(path)!r}; its keys: {few(list(part))}")
    return found


def load_checkpoint(model: nn.Module, path: Path, *, key: str | None = None) -> LoadReport:
    """Load weights from a file into a model, in place, and report which tensors matched.

    Args:
        model: the model to load into; not on the meta device.
        path: as in `read_state_dict`.
        key: which weights to load if the file holds several, such as ``"state_dict_ema"``.

    Raises:
        CheckpointError: the file cannot be read (see `read_state_dict`), none of its names is in
            the model, or the shape of a tensor differs; the model is then unchanged.
    """
    own = model.state_dict()
    found = read_state_dict(path, own.keys(), key=key)
    state = found.tensors
    _check_names(state, own, path)
    _check_shapes(state, own, path)
    # Layers read the version of their format from `_metadata`; without an entry in the file, the
    # model's own, current, version is assumed.
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
        f"is among the model's {len(own)} ({few(list(own), 2)})"
    )


def _check_shapes(state: Mapping[str, Tensor], own: Mapping[str, Any], path: Path) -> None:
    differing = [
        f"{name} is {_shape(state[name])} in the file and {_shape(own[name])} in the model"
        for name in own
        if name in state and not is_lazy(own[name]) and own[name].shape != state[name].shape
    ]
    if differing:
        classes = _classes(state, own)
        advice = (
            f"; if that is the number of classes: --model-arg num_classes={classes}, or as the "
            "constructor calls it"
            if classes is not None
            else ""
        )
        raise CheckpointError(f"{str(path)!r} does not fit: {few(differing)}{advice}")


def _classes(state: Mapping[str, Tensor], own: Mapping[str, Any]) -> int | None:
    """The first side of the tensors that differ, if they differ in it alone and all alike."""
    pairs = [
        (state[name].shape, own[name].shape)
        for name in own
        if name in state and not is_lazy(own[name]) and own[name].shape != state[name].shape
    ]
    if any(not one or not other or one[1:] != other[1:] for one, other in pairs):
        return None
    sides = {(one[0], other[0]) for one, other in pairs}
    return sides.pop()[0] if len(sides) == 1 else None


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a single number"
