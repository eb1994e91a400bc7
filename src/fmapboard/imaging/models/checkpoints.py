"""Load weights from files into a model, without running any code in the files; series of files."""

from __future__ import annotations

import glob
import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from fmapboard.errors import CheckpointError, closest, few, nearby, one_line
from fmapboard.imaging.images import natural_order
from fmapboard.imaging.models.weight_files import read_file


class LoadReport(NamedTuple):
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
        listed = {
            "missing": self.missing,
            "unexpected": self.unexpected,
            "with NaN or infinity": self.nonfinite,
        }
        for word, names in listed.items():
            if names:
                text += f"; {len(names)} {word}: {few(names)}"
        return text


def read_state_dict(path: Path, expected_keys: Collection[str], *, key: str | None) -> Found:
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
        raise CheckpointError(
            f"no named tensors in {str(path)!r}; its keys: {few(list(part))}; save "
            "weights with torch.save(model.state_dict(), file)"
        )
    return found


def load_checkpoint(model: nn.Module, path: Path, *, key: str | None = None) -> LoadReport:
    """Load weights from a file into a model, in place, and report which tensors matched.

    Args:
        model: the model to load into; not on the meta device.
        path: as in `read_state_dict`.
        key: which weights to load if the file holds several, such as ``"state_dict_ema"``.

    Raises:
        CheckpointError: the file cannot be read (see `read_state_dict`), none of its names is in
            the model, or the shape of a tensor differs.
    """
    own = model.state_dict()
    found = read_state_dict(path, own.keys(), key=key)
    state = found.tensors
    if not own.keys() & state.keys():
        raise CheckpointError(
            f"{str(path)!r} does not fit: none of its {len(state)} names ({few(list(state), 2)}) "
            f"is among the model's {len(own)} ({few(list(own), 2)}); give the network that the "
            "file was saved from as --model, or the part of the file as --checkpoint-key"
        )
    # Layers read the version of their format from `_metadata`; without an entry in the file, the
    # model's own, current, version is assumed.
    versions = {**getattr(own, "_metadata", {}), **getattr(state, "_metadata", {})}
    state._metadata = versions  # type: ignore[attr-defined]  # where torch keeps it
    try:
        result = model.load_state_dict(state, strict=False)
    except Exception as error:  # shapes differ; a model's own loading hooks may raise anything
        raise CheckpointError(
            f"{str(path)!r} does not fit: {one_line(error, most=300)}; if the model was built with "
            "another number of classes: --model-arg num_classes=N, or as its constructor calls it"
        ) from error
    loaded = {name: state[name] for name in own if name in state}
    return LoadReport(
        missing=tuple(result.missing_keys),
        unexpected=tuple(result.unexpected_keys),
        matched=len(own) - len(result.missing_keys),
        nonfinite=_nonfinite(loaded, model),
        place=found.place,
        others=found.others,
    )


def _nonfinite(state: Mapping[str, Tensor], model: nn.Module) -> tuple[str, ...]:
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    found = []
    for name, tensor in state.items():
        if not tensor.is_floating_point() and not tensor.is_complex():
            continue
        is_bad = ~tensor.isfinite() if name in parameters else tensor.isnan()
        count = int(is_bad.sum())
        if count:
            found.append(f"{name} ({count} of {tensor.numel()} values)")
    return tuple(found)


_DEPTH = 3
"""Maximum nesting depth of a state dict inside a checkpoint."""

_WRAPPERS = re.compile(
    r"(?<![^.])(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
"""Parts that DataParallel, torch.compile and others insert into a name, anywhere in it."""

_AVERAGED = re.compile(r"(?<![^._])(?:ema|averaged?|swa)(?![^._])", re.IGNORECASE)
"""Words in a key that mark averages of the trained weights."""


class Found(NamedTuple):
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
        >>> import torch
        >>> weight = torch.ones(1)
        >>> list(chosen({"ema": {"net.weight": weight, "old.weight": weight}}, "ema.net"))
        ['weight']

    Raises:
        CheckpointError: there is no such part; the text lists the parts there are.
    """
    places = dict(_candidates(raw))
    prefix = f"{key}."
    for place, state in places.items():
        if place == key:
            return state
        named = {}
        for name, value in state.items():
            full = _joined(place, _WRAPPERS.sub("", str(name)))
            if full.startswith(prefix):
                named[full.removeprefix(prefix)] = value
        if named:
            return named
    known = dict.fromkeys(place for place in places if place)
    for place, state in places.items():
        for name in state:
            first, _, _ = str(name).partition(".")
            known[_joined(place, first)] = None
    near = closest(key, list(known), listed=0)
    held = few(list(known), 6) or "no named tensors"
    raise CheckpointError(f"the checkpoint has no {key!r}{near}; it holds {held}")


def find(raw: Mapping[str, Any], expected_keys: Collection[str]) -> Found:
    """Find the state dict inside a checkpoint, with the names that the model expects.

    Every dictionary of tensors inside ``raw`` is a candidate (``{"state_dict": …}``,
    ``{"model": …, "ema": …}``). Each candidate is read in several ways: with and without the
    ``module.`` and ``_orig_mod.`` that DataParallel and torch.compile insert, and without a common
    prefix such as Lightning's ``model.``. The reading with the most names in ``expected_keys``
    wins. On a tie, trained weights win over averaged ones, and then names with fewer changes.
    Tensors alias those of ``raw``.

    Example:
        >>> import torch
        >>> list(find({"state_dict": {"module.weight": torch.ones(1)}}, {"weight"}).tensors)
        ['weight']
    """
    expected = frozenset(expected_keys)
    readings: list[Found] = []
    for place, candidate in _candidates(raw):
        readings += _readings(place, candidate, expected)
    if not readings:
        return Found({})

    def fits(reading: Found) -> int:
        if not expected:
            return len(reading.tensors)
        return len(expected & reading.tensors.keys())

    most = max(fits(reading) for reading in readings)
    fitting = [reading for reading in readings if fits(reading) == most]
    fitting.sort(key=lambda reading: len(_AVERAGED.findall(reading.place)))
    best = fitting[0]
    if not expected:
        return best
    places = dict.fromkeys(reading.place for reading in fitting)
    others = [place for place in places if place not in ("", best.place)]
    return best._replace(others=tuple(others))


def _candidates(
    state: Mapping[str, Any], depth: int = _DEPTH, place: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every dictionary with named tensors, preceded by its dotted key; outer ones first."""
    named = {key: value for key, value in state.items() if isinstance(key, str)}
    if any(isinstance(value, Tensor) for value in named.values()):
        yield place, state
    if depth == 0:
        return
    for key, value in named.items():
        if isinstance(value, Mapping):
            inner = _joined(place, key)
            yield from _candidates(value, depth - 1, inner)


def _readings(place: str, state: Mapping[str, Any], expected: frozenset[str]) -> Iterator[Found]:
    """Readings of one dictionary: with and without wrappers, and without a common prefix."""
    plain = [key for key in state if isinstance(key, str)]
    for wrappers in (False, True):
        keys = [_WRAPPERS.sub("", key) for key in plain] if wrappers else plain
        for prefix in _prefixes(keys, expected):
            tensors = _renamed(state, wrappers=wrappers, prefix=prefix)
            is_wrapper = not _WRAPPERS.sub("", prefix)
            shown = "" if is_wrapper else prefix.removesuffix(".")
            yield Found(tensors, _joined(place, shown))


def _renamed(state: Mapping[str, Any], *, wrappers: bool, prefix: str) -> dict[str, Tensor]:
    """The tensors with other names: without wrappers and ``prefix``."""

    def rename(key: str) -> str:
        if wrappers:
            key = _WRAPPERS.sub("", key)
        return key.removeprefix(prefix)

    kept: dict[str, Tensor] = OrderedDict()
    changed: dict[str, Tensor] = {}
    for key, value in state.items():
        if isinstance(key, str) and isinstance(value, Tensor):
            name = rename(key)
            tensors = kept if name == key else changed
            tensors[name] = value
    # Renamed tensors come last, so that they replace one that already has the new name.
    kept.update(changed)
    versions = {}
    for key, version in getattr(state, "_metadata", {}).items():
        module = rename(f"{key}." if key else "")
        versions[module.removesuffix(".")] = version
    kept._metadata = versions  # type: ignore[attr-defined]  # where torch keeps it
    return kept


def _prefixes(keys: Collection[str], expected: frozenset[str]) -> list[str]:
    """The prefixes whose removal turns the most keys into expected ones, shortest first."""
    votes: Counter[str] = Counter()
    for name in dict.fromkeys(keys):
        for start in re.finditer(r"^|\.", name):
            end = start.end()
            if name[end:] in expected:
                votes[name[:end]] += 1
    if not votes:
        return [""]
    most = max(votes.values())
    prefixes = [prefix for prefix, count in votes.items() if count == most]
    return sorted(prefixes, key=len)


def _joined(place: str, name: str) -> str:
    return ".".join(part for part in (place, name) if part)


_COUNTERS = ("step", "iter(?:ation)?", "epoch")
"""Words before the number of a step in a file name, the most specific first."""


class Checkpoint(NamedTuple):
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
    paths = [Path(path) for path in glob.glob(str(pattern))]
    paths.sort(key=natural_order)
    if not paths:
        near = "" if glob.has_magic(str(pattern.parent)) else nearby(pattern)
        advice = near or "; write it as the files are named, such as --checkpoint 'ckpt_*.pt'"
        raise CheckpointError(f"no checkpoint matches {str(pattern)!r}{advice}")
    found = [step_in(path.name) for path in paths]
    steps = [step for step in found if step is not None]
    if len(set(steps)) < len(paths):
        steps = list(range(len(paths)))
    series = [Checkpoint(step, path) for step, path in zip(steps, paths, strict=True)]
    return sorted(series)


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
