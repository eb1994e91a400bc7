"""Loads weights from files, without ever running code that a file carries."""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.errors import CheckpointError, closest, optional

_DEPTH = 3
"""How many dictionaries deep a state dict may lie inside a checkpoint."""

_NESTS = ("state_dict", "model_state_dict", "model", "net", "state_dict_ema", "ema")
"""Where state dicts usually lie; of equally good ones, the one named first here is taken."""

_WRAPPERS = re.compile(r"(?<![^.])(?:module|_orig_mod)\.")
"""What DataParallel and torch.compile insert into a name, at the start or further inside."""

_MORE_THAN_WEIGHTS = re.compile(
    r"GLOBAL (?P<name>[\w.]+)|TorchScript|Can only (?:create|build)|instantiate|unrecognized func"
)
"""What torch says of a file whose objects are not plain tensors, numbers, text and containers."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How a checkpoint fitted a model; ``str()`` says it in one line."""

    missing: tuple[str, ...]
    """Names of the model that the file lacks: these keep the values they had."""
    unexpected: tuple[str, ...]
    """Names in the file that the model lacks: these were left out."""
    matched: int
    """How many of the model's tensors were loaded."""

    def __str__(self) -> str:
        text = f"{self.matched} of {self.matched + len(self.missing)} tensors loaded"
        for word, names in (("missing", self.missing), ("unexpected", self.unexpected)):
            if names:
                text += f"; {len(names)} {word}: {_few(names)}"
        return text


def read_state_dict(path: Path, expected_keys: Collection[str] = ()) -> dict[str, Tensor]:
    """The tensors in a checkpoint by name, on the CPU, unwrapped as by `unwrap`.

    The file is a safetensors file if its name ends in ``.safetensors``, else what ``torch.save``
    writes. It is read with ``weights_only=True``: code inside it never runs.

    Raises:
        CheckpointError: the file is missing, empty, truncated, no checkpoint, holds other objects
            than weights, or no tensors.
        MissingExtra: it is a safetensors file and safetensors is not installed.
    """
    _check_file(path)
    raw = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    if not isinstance(raw, Mapping):
        raise CheckpointError(
            f"{str(path)!r} holds a {type(raw).__name__}, not a state dict; "
            "make one with torch.save(model.state_dict(), file)"
        )
    state = unwrap(raw, expected_keys)
    if not state:
        raise CheckpointError(f"{str(path)!r} holds no named tensors; its keys: {_few(list(raw))}")
    return state


def unwrap(state: Mapping[str, Any], expected_keys: Collection[str]) -> dict[str, Tensor]:
    """The state dict inside a checkpoint, its names freed from what wrappers put before them.

    Every dictionary of tensors inside ``state`` is a candidate (``{"state_dict": …}``,
    ``{"model": …, "ema": …}``), read with and without the ``module.`` and ``_orig_mod.`` that
    DataParallel and torch.compile insert, and without a common prefix such as Lightning's
    ``model.``. The reading with the most names in ``expected_keys`` wins, the plainest one on a
    tie. Tensors alias those of ``state``.

    Example:
        >>> list(unwrap({"state_dict": {"module.weight": torch.ones(1)}}, {"weight"}))
        ['weight']
    """
    expected = frozenset(expected_keys)
    readings = [
        reading
        for candidate in _candidates(state, _DEPTH)
        for reading in _readings(candidate, expected)
    ]
    if not readings:
        return {}
    if not expected:
        return max(readings, key=len)
    return max(readings, key=lambda reading: len(expected & reading.keys()))


def load_checkpoint(model: nn.Module, path: Path) -> LoadReport:
    """Load a file of weights into a model, and say what fitted.

    Raises:
        CheckpointError: the file cannot be read (see `read_state_dict`), no name in it is the
            model's, or a tensor has another shape; the model is then as it was.
    """
    own = model.state_dict()
    state = read_state_dict(path, own.keys())
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
    return LoadReport(missing, unexpected, matched=len(own) - len(missing))


def one_line(error: BaseException, *, most: int = 160) -> str:
    """What an error says, by its type and the first sentence that fits a line."""
    text = " ".join(str(error).split())
    short = text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"
    return f"{type(error).__name__}: {short}" if short else type(error).__name__


def _check_file(path: Path) -> None:
    if not path.exists():
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise CheckpointError(
            f"no such checkpoint: {str(path)!r}; closest: {closest(path.name, names)}"
        )
    if path.is_dir():
        raise CheckpointError(f"{str(path)!r} is a folder, not a checkpoint file")
    if path.is_file() and path.stat().st_size == 0:
        raise CheckpointError(f"the checkpoint {str(path)!r} is empty: 0 bytes")


def _read_safetensors(path: Path) -> Any:
    library = optional("safetensors.torch", extra="safetensors", why=f"reading {str(path)!r}")
    try:
        return library.load_file(str(path), device="cpu")
    except Exception as error:  # safetensors raises its own type, and OSError
        raise _not_a_checkpoint(path, error) from error


def _read_torch(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old formats, which the user cannot help
            return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        found = _MORE_THAN_WEIGHTS.search(str(error))
        if found is None:
            raise _not_a_checkpoint(path, error) from error
        what = found["name"] or "Python objects"
        raise CheckpointError(
            f"{str(path)!r} holds more than weights ({what}) and is not loaded, as that could run "
            "code; make a file that does not with torch.save(model.state_dict(), file)"
        ) from error
    except Exception as error:  # what random bytes make an unpickler raise
        raise _not_a_checkpoint(path, error) from error


def _not_a_checkpoint(path: Path, error: Exception) -> CheckpointError:
    # Of a stream that is no pickle, torch tells a page about trust, or a bare "KeyError: 101".
    tells_little = isinstance(error, (pickle.UnpicklingError, LookupError, ValueError))
    reason = "not a file of torch.save" if tells_little else one_line(error)
    return CheckpointError(
        f"{str(path)!r} is not a checkpoint, or is truncated or damaged ({reason})"
    )


def _candidates(state: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """Every dictionary inside that holds named tensors, the outermost first."""
    if any(isinstance(key, str) and isinstance(state[key], Tensor) for key in state):
        yield state
    known = {name: place for place, name in enumerate(_NESTS)}
    names = [key for key in state if isinstance(key, str) and isinstance(state[key], Mapping)]
    for name in sorted(names, key=lambda name: known.get(name, len(known))) if depth else ():
        yield from _candidates(state[name], depth - 1)


def _readings(state: Mapping[str, Any], expected: frozenset[str]) -> Iterator[dict[str, Tensor]]:
    """The tensors of one dictionary, named as they are and without wrappers, less a prefix."""
    yield _renamed(state, prefix=_prefix(state, expected))
    bare = {_WRAPPERS.sub("", key): None for key in state if isinstance(key, str)}
    yield _renamed(state, wrappers=True, prefix=_prefix(bare, expected))


def _renamed(
    state: Mapping[str, Any], *, wrappers: bool = False, prefix: str = ""
) -> dict[str, Tensor]:
    def rename(key: str) -> str:
        return (_WRAPPERS.sub("", key) if wrappers else key).removeprefix(prefix)

    tensors = {k: v for k, v in state.items() if isinstance(k, str) and isinstance(v, Tensor)}
    # Those that carry the prefix come last, so that they win over a namesake without it.
    order = sorted(tensors, key=lambda key: rename(key) != key)
    renamed = OrderedDict((rename(key), tensors[key]) for key in order)
    versions = getattr(state, "_metadata", {})
    renamed._metadata = {  # type: ignore[attr-defined]  # where torch keeps it
        rename(f"{key}.").removesuffix("."): value for key, value in versions.items()
    }
    return renamed


def _prefix(keys: Collection[str] | Mapping[str, Any], expected: frozenset[str]) -> str:
    """The prefix whose removal makes the most keys expected ones; of several, the shortest."""
    votes: Counter[str] = Counter()
    for key in keys:
        ends = [0, *(dot.end() for dot in re.finditer(r"\.", key))] if isinstance(key, str) else []
        votes.update(key[:end] for end in ends if key[end:] in expected)
    return max(votes, key=lambda prefix: (votes[prefix], -len(prefix)), default="")


def _check_names(state: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path) -> None:
    if own.keys() & state.keys():
        return
    raise CheckpointError(
        f"{str(path)!r} does not fit: none of its {len(state)} names ({_few(list(state), 2)}) "
        f"is one of the model's {len(own)} ({_few(list(own), 2)})"
    )


def _check_shapes(state: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path) -> None:
    differing = [
        f"{name} is {_shape(state[name])} in the file and {_shape(own[name])} in the model"
        for name in own
        if name in state and not is_lazy(own[name]) and own[name].shape != state[name].shape
    ]
    if differing:
        raise CheckpointError(f"{str(path)!r} does not fit: {_few(differing)}")


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a single number"


def _few(names: Collection[Any], most: int = 3) -> str:
    shown = ", ".join(str(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
