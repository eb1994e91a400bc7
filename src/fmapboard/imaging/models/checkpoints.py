"""Load weights from files into a model, without running any code in the files; series of files."""

from __future__ import annotations

import glob
import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.errors import CheckpointError, closest
from fmapboard.imaging.images import natural_order
from fmapboard.imaging.messages import few, one_line
from fmapboard.imaging.models.weight_files import read_file


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
    differing = {
        name: (state[name].shape, own[name].shape)
        for name in own
        if name in state and not is_lazy(own[name]) and own[name].shape != state[name].shape
    }
    if differing:
        said = [
            f"{name} is {_shape(there)} in the file and {_shape(here)} in the model"
            for name, (there, here) in differing.items()
        ]
        classes = _classes(differing.values())
        advice = (
            f"; if that is the number of classes: --model-arg num_classes={classes}, or as the "
            "constructor calls it"
            if classes is not None
            else ""
        )
        raise CheckpointError(f"{str(path)!r} does not fit: {few(said)}{advice}")


def _classes(pairs: Collection[tuple[torch.Size, torch.Size]]) -> int | None:
    """The first side of the shapes that differ, if they differ in it alone and all alike."""
    if any(not one or not other or one[1:] != other[1:] for one, other in pairs):
        return None
    sides = {(one[0], other[0]) for one, other in pairs}
    return sides.pop()[0] if len(sides) == 1 else None


def _shape(shape: torch.Size) -> str:
    return "x".join(map(str, shape)) or "a single number"


_DEPTH = 3
"""Maximum nesting depth of a state dict inside a checkpoint."""

_NESTS = ("state_dict", "model_state_dict", "model", "net", "state_dict_ema", "model_ema", "ema")
"""Common keys of state dicts, in order of preference among equally good ones."""

_WRAPPERS = re.compile(
    r"(?<![^.])(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
"""Parts that DataParallel, torch.compile and others insert into a name, anywhere in it."""

_AVERAGED = re.compile(r"(?<![^._])(?:ema|averaged?|swa)(?![^._])", re.IGNORECASE)
"""Words in a key that mark averages of the trained weights."""


@dataclass(frozen=True, slots=True)
class Found:
    """A state dict found inside a checkpoint."""

    tensors: dict[str, Tensor]
    place: str = ""
    """Its dotted key, such as ``"state_dict_ema"`` or ``"ema.ema_model"``; empty for the whole
    checkpoint."""
    others: tuple[str, ...] = ()
    """Dotted keys of state dicts that match the model equally well."""


def chosen(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The part of a checkpoint under a dotted key: a dictionary, or the names with that prefix.

    Example:
        >>> chosen({"ema": {"net.weight": 1, "old.weight": 2}}, "ema.net")
        {'weight': 1}

    Raises:
        CheckpointError: there is no such part; the text lists the parts there are.
    """
    part = _under(raw, key)
    if part is None:
        places = _places(raw)
        raise CheckpointError(
            f"the checkpoint has no {key!r}{closest(key, places, listed=0)}; "
            f"it holds {few(places, 6) or 'no named tensors'}"
        )
    return part


def _under(raw: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    for end in (m.start() for m in re.finditer(r"\.|$", key)):
        part = raw.get(key[:end])
        if isinstance(part, Mapping):
            found = _under(part, key[end + 1 :]) if key[end:] else part
            if found is not None:
                return found
    plain = {name: value for name, value in raw.items() if isinstance(name, str)}
    bare = {_WRAPPERS.sub("", name): value for name, value in plain.items()}
    for names in (plain, bare):
        named = {name: value for name, value in names.items() if name.startswith(f"{key}.")}
        if named:
            return {name.removeprefix(f"{key}."): value for name, value in named.items()}
    return None


def _places(raw: Mapping[str, Any]) -> list[str]:
    """Keys for `chosen`: of every dictionary of tensors, then of the top-level names in them."""
    candidates = list(_candidates(raw, _DEPTH))
    starts = (
        _joined(place, start)
        for place, state in candidates
        for start in sorted({key.partition(".")[0] for key in state if isinstance(key, str)})
    )
    return [*(place for place, _ in candidates if place), *starts]


def find(raw: Mapping[str, Any], expected_keys: Collection[str]) -> Found:
    """Find the state dict inside a checkpoint, with the names that the model expects.

    Every dictionary of tensors inside ``raw`` is a candidate (``{"state_dict": …}``,
    ``{"model": …, "ema": …}``). Each candidate is read in several ways: with and without the
    ``module.`` and ``_orig_mod.`` that DataParallel and torch.compile insert, and without a common
    prefix such as Lightning's ``model.``. If no name matches then, a prefix that the expected names
    have in common is added. The reading with the most names in ``expected_keys`` wins. On a tie,
    trained weights win over averaged ones, and then names with fewer changes. Tensors alias those
    of ``raw``.

    Example:
        >>> list(find({"state_dict": {"module.weight": torch.ones(1)}}, {"weight"}).tensors)
        ['weight']
    """
    expected = frozenset(expected_keys)
    readings = [
        reading
        for place, candidate in _candidates(raw, _DEPTH)
        for reading in _readings(place, candidate, expected)
    ]
    if not readings:
        return Found({})

    def fits(reading: Found) -> int:
        return len(expected & reading.tensors.keys() if expected else reading.tensors)

    most = max(map(fits, readings))
    best = [reading for reading in readings if fits(reading) == most]
    best.sort(key=lambda reading: len(_AVERAGED.findall(reading.place)))
    others = dict.fromkeys(r.place for r in best if r.place and r.place != best[0].place)
    return Found(best[0].tensors, best[0].place, tuple(others) if expected else ())


def _candidates(
    state: Mapping[str, Any], depth: int, place: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every dictionary with named tensors, preceded by its dotted key; outer ones first."""
    if any(isinstance(key, str) and isinstance(state[key], Tensor) for key in state):
        yield place, state
    known = {name: rank for rank, name in enumerate(_NESTS)}
    names = [key for key in state if isinstance(key, str) and isinstance(state[key], Mapping)]
    for name in sorted(names, key=lambda name: known.get(name, len(known))) if depth else ():
        yield from _candidates(state[name], depth - 1, _joined(place, name))


def _readings(place: str, state: Mapping[str, Any], expected: frozenset[str]) -> Iterator[Found]:
    """Readings of one dictionary: with and without wrappers, and without a common prefix."""
    plain = [key for key in state if isinstance(key, str)]
    for wrappers, keys in ((False, plain), (True, [_WRAPPERS.sub("", key) for key in plain])):
        for prefix in _prefixes(keys, expected):
            tensors = _renamed(state, wrappers=wrappers, prefix=prefix)
            if not expected & tensors.keys():
                tensors = _renamed(tensors, added=_missing_prefix(tensors, expected))
            shown = "" if _WRAPPERS.sub("", prefix) == "" else prefix.removesuffix(".")
            yield Found(tensors, _joined(place, shown))


def _renamed(
    state: Mapping[str, Any], *, wrappers: bool = False, prefix: str = "", added: str = ""
) -> dict[str, Tensor]:
    """The tensors with other names: without wrappers and ``prefix``, and below ``added``."""

    def rename(key: str) -> str:
        return added + (_WRAPPERS.sub("", key) if wrappers else key).removeprefix(prefix)

    tensors = {k: v for k, v in state.items() if isinstance(k, str) and isinstance(v, Tensor)}
    # Renamed tensors come last, so that they replace one that already has the new name.
    order = sorted(tensors, key=lambda key: rename(key) != key)
    renamed = OrderedDict((rename(key), tensors[key]) for key in order)
    versions = getattr(state, "_metadata", {})
    renamed._metadata = {  # type: ignore[attr-defined]  # where torch keeps it
        rename(f"{key}." if key else "").removesuffix("."): value for key, value in versions.items()
    }
    return renamed


def _prefixes(keys: Collection[str], expected: frozenset[str]) -> list[str]:
    """The prefixes whose removal turns the most keys into expected ones, shortest first."""
    votes = _votes(keys, expected)
    most = max(votes.values(), default=0)
    return sorted((prefix for prefix in votes if votes[prefix] == most), key=len) or [""]


def _missing_prefix(keys: Collection[str], expected: frozenset[str]) -> str:
    """The prefix that turns most of the keys into expected ones; empty if none or several do.

    The keys lack it if the file holds only a part of the model, such as its backbone.
    """
    votes = _votes(expected, keys)
    (best, most), (_, second) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    return best if most > second and 2 * most > len(keys) else ""


def _votes(names: Iterable[str], known: Collection[str]) -> Counter[str]:
    """Dotted prefix -> number of the names that are known without it."""
    votes: Counter[str] = Counter()
    for name in dict.fromkeys(names):
        ends = [0, *(dot.end() for dot in re.finditer(r"\.", name))]
        votes.update(name[:end] for end in ends if name[end:] in known)
    return votes


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place and name else place or name


_COUNTERS = ("step", "iter(?:ation)?", "epoch")
"""Words before the number of a step in a file name, the most specific first."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of a series.

    Attributes:
        step: Number of its step.
        path: The file or folder.
    """

    step: int
    path: Path


def series_of(pattern: Path | None) -> list[Checkpoint]:
    """The checkpoints that a glob pattern matches, in the order of their steps.

    The number of the step is that after "step", "iter" or "epoch" in the file name, otherwise the
    last number in it. If a name has none, or two have the same, all are numbered from 0 in natural
    order (``ckpt_2`` before ``ckpt_10``).

    Example:
        >>> series_of(Path("weights.pt"))
        []

    Returns:
        An empty list if the path is not a pattern.

    Raises:
        CheckpointError: The pattern matches nothing.
    """
    if pattern is None or pattern.exists() or not glob.has_magic(str(pattern)):
        return []
    paths = sorted(map(Path, glob.glob(str(pattern))), key=natural_order)
    if not paths:
        raise CheckpointError(f"no checkpoint matches {str(pattern)!r}")
    found = [step_in(path.name) for path in paths]
    steps = [step for step in found if step is not None]
    if len(set(steps)) < len(paths):
        steps = list(range(len(paths)))
    numbered = (Checkpoint(step, path) for step, path in zip(steps, paths, strict=True))
    return sorted(numbered, key=lambda checkpoint: checkpoint.step)


def step_in(name: str) -> int | None:
    """The number of a step in a checkpoint's file name; None if it has none.

    Example:
        >>> step_in("ckpt_0120.pt"), step_in("epoch=3-step=1200-v1.ckpt"), step_in("last.pt")
        (120, 1200, None)
    """
    stem = re.sub(r"\.[A-Za-z]\w*$", "", name)
    for word in _COUNTERS:
        counted = re.findall(rf"{word}s?[=_-]?(\d+)", stem, re.IGNORECASE)
        if counted:
            return int(counted[-1])
    numbers = re.findall(r"\d+", stem)
    return int(numbers[-1]) if numbers else None
