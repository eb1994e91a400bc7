"""The run's overview, a file of its own for its format: every layer's state, per logged step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.overview import (
    KINDS,
    LASTING,
    Flags,
    LayerFacts,
    OverviewStep,
    pack_layers,
    pack_overview,
)
from fmapboard.health.states import is_activation, states
from fmapboard.records import Floats, InputImage, LayerMeasurement, Statistics, TabRecord
from fmapboard.summary.change import WEIGHTS, Changes, Drawn


def input_numbers(images: Sequence[InputImage]) -> dict[str, float]:
    """`INPUT_NUMBERS` of all images; only ``nonfinite`` without a finite value.

    Large images were averaged down before (see ``InputImage.block``), which lowers the standard
    deviation of fine detail.

    Args:
        images: the drawn samples, as the network received them.
    """
    if not images:
        return {}
    all_values = np.concatenate([image.values.ravel() for image in images])
    values = all_values[np.isfinite(all_values)].astype(np.float64)
    nonfinite = float(all_values.size - values.size)
    if not values.size:
        return {"nonfinite": nonfinite}
    with np.errstate(all="ignore"):
        numbers = {
            "minimum": float(values.min()),
            "maximum": float(values.max()),
            "mean": float(values.mean()),
            "std": float(values.std()),
            "nonfinite": nonfinite,
            "interleaved": _interleaved(images),
            "stretched": float(images[0].is_stretched(values.min(), values.max())),
        }
    for name, number in list(numbers.items()):
        if not np.isfinite(number):
            del numbers[name]
    return numbers


def _interleaved(images: Sequence[InputImage]) -> float:
    """How unevenly neighbours differ by their place modulo 3; NaN if that is not known.

    Nor is it of images that were made larger by repeating pixels.
    """
    shape = images[0].values.shape
    channels, _, width = shape
    was_averaged = any(image.block > 1 for image in images)
    if channels != 3 or width < 8 or was_averaged:
        return math.nan
    rows = []
    for image in images:
        if image.values.shape == shape:
            rows.append(image.values[:, ::4])
    steps = np.diff(np.stack(rows), axis=3)  # [N, 3, H/4, W - 1]
    differences = np.abs(steps).mean(0).ravel()
    positions = np.arange(math.prod(shape)).reshape(shape)
    compared = positions[:, ::4, 1:].ravel()
    place = compared % 3
    sums = np.bincount(place, differences)
    means = sums / np.bincount(place)
    least = means.min()
    if least <= 0:
        return math.nan
    return float(least / means.max())


_NONFINITE = ("nan", "positive_infinity", "negative_infinity")
_TINY = float(np.finfo(np.float32).tiny)


class Segments:
    """Consecutive parts of a concatenated array.

    Args:
        sizes: length of each part, at least 1.

    Attributes:
        sizes: as an array.
        starts: index of the first element of each part.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = np.array(sizes, np.intp)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def sums(self, values: npt.NDArray[Any]) -> Floats:
        """The sum of each part, f64."""
        return np.add.reduceat(values, self.starts, dtype=np.float64)

    def means(self, values: npt.NDArray[Any]) -> Floats:
        """The mean of the values of each part that are not NaN; NaN if all are."""
        sums = self.sums(values)
        if not np.isnan(sums).any():
            return sums / self.sizes
        known = ~np.isnan(values)
        known_values = np.where(known, values, 0.0)
        return self.sums(known_values) / self.sums(known)


def statistics_of_layers(
    statistics: Sequence[Statistics], channels: Segments, has_moments: Flags
) -> dict[str, Floats]:
    """Columns that follow from the statistics alone, each [layers].

    The mean and std are over the channels of a layer, with equal weight. The channels of all layers
    are concatenated and reduced together: a call of NumPy per layer and number would take several
    times as long.

    Args:
        statistics: those of each layer; at least one layer, each of at least one channel.
        channels: the channels of each layer.
        has_moments: bool [layers], False where the mean and std of the channels are not known.
    """

    def joined(name: str) -> npt.NDArray[Any]:
        """One number of the channels of all layers, [channels of all layers]."""
        return np.concatenate([getattr(layer, name) for layer in statistics])

    mean = joined("mean")
    std = joined("std")
    with np.errstate(all="ignore"):
        squares = mean * mean + std * std
        centre = np.where(has_moments, channels.means(mean), np.nan)
        square = np.where(has_moments, channels.means(squares), np.nan)
        variance = np.maximum(square - centre * centre, 0.0)
    columns = {
        "minimum": np.fmin.reduceat(joined("minimum"), channels.starts),
        "maximum": np.fmax.reduceat(joined("maximum"), channels.starts),
        "mean": centre,
        "std": np.sqrt(variance),
        "spread": np.array([layer.spread for layer in statistics]),
    }
    nonfinite = np.zeros(len(mean), np.int64)
    for name in _NONFINITE:
        counts = joined(name)
        nonfinite += counts
        columns[name] = channels.sums(counts)
    columns["nonfinite"] = channels.means(nonfinite > 0)
    columns["constant"] = channels.means(joined("constant"))
    counted = [layer.counted for layer in statistics]
    columns["counted"] = np.array(counted, np.float64)
    return columns


def changes_of_layers(labels: Sequence[str], changes: Changes, step: int) -> dict[str, Floats]:
    """Columns with the mean change of each layer's maps and weights, and since how many steps.

    The mean is over the channels with a finite change, and NaN if there are none. That of weights
    is 0 only if the change of each channel is 0.
    """
    columns: dict[str, Floats] = {}
    for column, age, name in (
        ("change", "change_steps", "feature_maps"),
        ("weights_change", "weights_steps", WEIGHTS),
    ):
        known = list[int]()
        values = list[Floats]()
        ages = list[int]()
        for index, label in enumerate(labels):
            change = changes.get((label, name))
            if change is not None:
                known.append(index)
                values.append(change.values)
                ages.append(step - change.since)
        if not known:
            continue
        unknown = np.full(len(labels), np.nan)
        columns[column] = unknown.copy()
        columns[column][known] = _mean_changes(values, is_exact=name == WEIGHTS)
        columns[age] = unknown
        columns[age][known] = ages
    return columns


def _mean_changes(arrays: Sequence[Floats], *, is_exact: bool) -> Floats:
    """The mean of each array's finite values; if ``is_exact``, 0 only for an array of zeros."""
    parts = Segments([array.size for array in arrays])
    values = np.concatenate(arrays).astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    with np.errstate(all="ignore"):
        means = parts.means(values)
    if is_exact:
        is_incomplete = np.isnan(parts.sums(values))
        means[is_incomplete & (means == 0)] = np.nan
    is_tiny = (means > 0) & (means < _TINY)
    means[is_tiny] = _TINY  # not stored as 0
    return means


Measured = Sequence[tuple[LayerMeasurement, Statistics]]
Roles = Mapping[str, tuple[str, ...]]
"""Label -> kinds of pictures drawn so far."""


class OverviewLayers(NamedTuple):
    """The measured layers of a step, which seldom differ from those of the step before.

    Attributes:
        key: what all other fields follow from.
        facts: see ``LayerFacts``.
        packed: blob 2.
        channels: channels of each layer.
        sources: index of each layer whose statistics have dead channels: the activations.
        dead_of: index in ``sources`` of each layer's own activation or the one that follows, or -1.
        labels: label of each layer.
        has_moments: True for layers whose means are known.
    """

    key: tuple[object, ...]
    facts: tuple[LayerFacts, ...]
    packed: bytes
    channels: Segments
    sources: tuple[int, ...]
    dead_of: npt.NDArray[np.intp]
    labels: list[str]
    has_moments: Flags


def layers_of(
    last: OverviewLayers | None,
    roles: Roles,
    measured: Measured,
    followers: Mapping[str, LayerMeasurement],
) -> OverviewLayers:
    """The layers of a step; those of the step before if they are the same.

    Args:
        last: Those of the step before; None at the first.
        roles: The kinds of pictures.
        measured: The layers' feature maps, and their statistics.
        followers: Label of a layer -> the activation that follows it.
    """
    calls = [part.layer_call for part, _ in measured]
    sizes = [statistics.minimum.size for _, statistics in measured]
    drawn = [_drawn_shape(part) for part, _ in measured]
    key = (calls, sizes, drawn, roles)
    if last is not None and last.key == key:
        return last
    facts = list[LayerFacts]()
    sources = list[int]()
    place_of = dict[str, int]()
    for index, (part, statistics) in enumerate(measured):
        label = part.layer_call.label
        follower = followers.get(label)
        own_roles = roles.get(label, ())
        layer = _facts(part, sizes[index], own_roles, follower)
        facts.append(layer)
        if statistics.dead is not None:
            place_of[label] = len(sources)
            sources.append(index)
    dead_of = []
    for layer in facts:
        source = layer.activation or layer.label
        dead_of.append(place_of.get(source, -1))
    has_moments = [call.pictures for call in calls]
    return OverviewLayers(
        key=key,
        facts=tuple(facts),
        packed=pack_layers(facts),
        channels=Segments(sizes),
        sources=tuple(sources),
        dead_of=np.array(dead_of, np.intp),
        labels=[layer.label for layer in facts],
        has_moments=np.array(has_moments, bool),
    )


def _drawn_shape(part: LayerMeasurement) -> tuple[int, int]:
    """Numbers of drawn samples and channels; (1, 0) without planes."""
    if part.planes is None:
        return 1, 0
    samples, channels = part.planes.pixels.shape[:2]
    return samples, channels


def _facts(
    part: LayerMeasurement,
    channels: int,
    roles: tuple[str, ...],
    follower: LayerMeasurement | None,
) -> LayerFacts:
    """What is known about a layer with statistics; ``follower`` is the activation behind it."""
    call = part.layer_call
    samples, drawn = _drawn_shape(part)
    kernel_shape = call.kernel_shape
    return LayerFacts(
        label=call.label,
        layer=call.layer,
        type=call.type,
        kernel_shape=None if kernel_shape is None else tuple(kernel_shape),
        call=call.call,
        position=call.position,
        channels=channels,
        values=math.prod(part.shape) // channels,
        drawn=drawn,
        samples=samples,
        roles=roles,
        activation=None if follower is None else follower.layer_call.label,
        transposed_stride=call.transposed_stride,
        followed_by=call.followed_by,
        shape="" if call.part is None else call.part.shape,
        unit=call.unit,
    )


def channel_fractions(layers: OverviewLayers, numbers: Mapping[str, Floats]) -> dict[str, float]:
    """Tag -> fraction of a layer's channels; of dead ones only for activations."""
    constant = numbers["constant"].tolist()
    nonfinite = numbers["nonfinite"].tolist()
    dead = numbers["dead"].tolist()
    fractions: dict[str, float] = {}
    for index, label in enumerate(layers.labels):
        constant_tag = tags.of(tags.CONSTANT_CHANNELS, label)
        nonfinite_tag = tags.of(tags.NONFINITE, label)
        fractions[constant_tag] = constant[index]
        fractions[nonfinite_tag] = nonfinite[index]
        if index in layers.sources:
            dead_tag = tags.of(tags.DEAD_CHANNELS, label)
            fractions[dead_tag] = dead[index]
    return fractions


Ages = Mapping[str, npt.NDArray[np.int64]]
Since = Mapping[str, Mapping[str, int]]
Present = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class OverviewState:
    """What is known from the stored steps; nothing in it is changed in place.

    Attributes:
        steps_written: number of steps.
        layers: those of the last step.
        since: kind -> label -> first step in that state, also of layers not in ``layers``.
        dead_for: label of an activation -> for how many of the steps at which it was measured each
            of its channels has been dead.
        roles: the kinds of pictures.
        missed: label -> number of steps without pictures, of layers that had any.
    """

    steps_written: int = 0
    layers: OverviewLayers | None = None
    since: Since = field(default_factory=dict)
    dead_for: Ages = field(default_factory=dict)
    roles: Roles = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)


def overview(
    state: OverviewState, step: Drawn
) -> tuple[OverviewState, list[TabRecord], dict[str, float]]:
    """Build the record of a step and, at the first step, the same once more in a series of its own.

    A step at which no feature maps were measured has no record.

    Args:
        state: What is known from the steps before.
        step: The step.

    Returns:
        The state after this step; the records; and the scalars that the same numbers give, without
        the prefix.
    """
    data = step.data
    measured = _with_statistics(data.measured)
    if not measured:
        return state, [], {}
    roles = _roles(state.roles, step)
    missed = _missed(state, roles, step)
    layers = layers_of(state.layers, roles, measured, step.followers)
    statistics = [part_statistics for _, part_statistics in measured]
    dead = _dead(state.dead_for, layers, statistics)
    numbers = statistics_of_layers(statistics, layers.channels, layers.has_moments)
    numbers |= changes_of_layers(layers.labels, step.changes, data.step)
    sizes = [math.prod(part.shape) for part, _ in measured]
    numbers["values"] = np.array(sizes) / layers.channels.sizes
    missed_of_layers = [missed.get(label, 0) for label in layers.labels]
    numbers["missed"] = np.array(missed_of_layers)
    numbers["dead"] = dead.share[layers.dead_of]
    numbers["dead_lasting"] = dead.lasting_share[layers.dead_of]
    since, present = _since(state.since, layers, numbers, data.step)
    state = OverviewState(
        steps_written=state.steps_written + 1,
        layers=layers,
        since=since,
        dead_for=dead.dead_for,
        roles=roles,
        missed=missed,
    )
    stored = OverviewStep(
        step=data.step,
        steps_written=state.steps_written,
        layers=layers.facts,
        numbers=numbers,
        since=present,
        network_input=input_numbers(data.inputs),
        source=data.source,
    )
    records = _records(step.prefix, stored, layers.packed)
    return state, records, channel_fractions(layers, numbers) | _balance_of_experts(measured)


def _balance_of_experts(
    measured: Iterable[tuple[LayerMeasurement, Statistics]],
) -> dict[str, float]:
    """Tag -> entropy of the load of a router's experts, as a share of that of equal loads."""
    found: dict[str, float] = {}
    for part, numbers in measured:
        load = numbers.mean  # share of the tokens that an expert gets
        if part.layer_call.unit != "expert" or not load.sum() > 0:
            continue
        share = load[load > 0] / load.sum()
        entropy = -float((share * np.log(share)).sum())
        found[tags.of(tags.EXPERT_BALANCE, part.layer_call.label)] = entropy / math.log(len(load))
    return found


def _records(prefix: str, stored: OverviewStep, packed_layers: bytes) -> list[TabRecord]:
    blobs = pack_overview(stored, packed_layers)
    records = [TabRecord(prefix + tags.OVERVIEW, blobs)]
    if stored.steps_written == 1:
        records.append(TabRecord(prefix + tags.FIRST_OVERVIEW, blobs))
    return records


def _with_statistics(measured: Sequence[LayerMeasurement]) -> Measured:
    """The feature maps that have statistics, with these."""
    found = []
    for part in measured:
        statistics = part.statistics
        if part.kind == "feature_maps" and statistics and statistics.minimum.size:
            found.append((part, statistics))
    return found


def _roles(before: Roles, step: Drawn) -> Roles:
    """Label -> kinds of pictures drawn so far, with those of a step."""
    roles = dict(before)
    for label, pictures in step.pictures.items():
        kinds = list(roles.get(label, ()))
        for tagged in pictures:
            if tagged.kind not in kinds:
                kinds.append(tagged.kind)
        roles[label] = tuple(kinds)
    return roles


def _missed(state: OverviewState, roles: Roles, step: Drawn) -> dict[str, int]:
    """Label -> number of steps without pictures, with another step."""
    missed = dict[str, int]()
    for label in roles:
        missed[label] = state.missed.get(label, state.steps_written)
        if label not in step.pictures:
            missed[label] += 1
    return missed


class _Dead(NamedTuple):
    """Dead channels of the activations.

    Attributes:
        dead_for: See ``OverviewState``.
        share: Of the channels of each source that are dead, [sources + 1]; NaN at the end, for
            layers without dead channels.
        lasting_share: Likewise, of those that were dead at each of the last `LASTING` steps.
    """

    dead_for: Ages
    share: Floats
    lasting_share: Floats


def _dead(before: Ages, layers: OverviewLayers, statistics: Sequence[Statistics]) -> _Dead:
    """``dead_for`` with another step, and which share of the channels is dead."""
    dead_for = dict(before)
    share = np.full(len(layers.sources) + 1, np.nan)
    lasting_share = share.copy()
    for place, index in enumerate(layers.sources):
        dead = statistics[index].dead
        assert dead is not None  # it is one of the sources
        label = layers.labels[index]
        ages = before.get(label)
        if ages is None or ages.size != dead.size:
            ages = np.zeros(dead.size, np.int64)
        ages = np.where(dead, ages + 1, 0)
        dead_for[label] = ages
        is_lasting = ages >= LASTING
        share[place] = np.count_nonzero(dead) / dead.size
        lasting_share[place] = np.count_nonzero(is_lasting) / dead.size
    return _Dead(dead_for, share, lasting_share)


def _since(
    before: Since, layers: OverviewLayers, numbers: Mapping[str, Floats], step: int
) -> tuple[Since, Present]:
    """Since when layers are in each kind of state.

    Returns:
        By label, of all layers ever in that state; and by index, of those that are in it now.
    """
    since = dict(before)
    present: Present = {}
    own = is_activation(layers.facts, numbers["dead"])
    for kind, codes in states(numbers, own).items():
        spells = dict(before.get(kind, {}))
        now = dict[int, int]()
        column = numbers[_KNOWN_BY[kind]]
        is_known = ~np.isnan(column)
        for index in np.flatnonzero(is_known).tolist():
            label = layers.labels[index]
            if not codes[index]:
                spells.pop(label, None)
                continue
            begun = step
            if kind == "unchanged":
                begun -= int(numbers["weights_steps"][index])
            now[index] = spells.setdefault(label, begun)
        since[kind] = spells
        present[kind] = now
    return since, present


_KNOWN_COLUMNS = ("nonfinite", "minimum", "dead", "constant", "weights_change")
_KNOWN_BY = dict(zip(KINDS, _KNOWN_COLUMNS, strict=True))
"""State -> the column that is NaN where it is not known."""
