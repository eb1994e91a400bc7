"""The run's overview, a file of its own for its format: every layer's state, per logged step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.overview import (
    INPUT_NUMBERS,
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
    known = np.concatenate([image.values[np.isfinite(image.values)] for image in images])
    lost = {"nonfinite": float(sum(image.values.size for image in images) - known.size)}
    if not known.size:
        return lost
    with np.errstate(all="ignore"):
        spread = known.astype(np.float64)
        moments = spread.min(), spread.max(), spread.mean(), spread.std()
        numbers = (*moments, lost["nonfinite"], _interleaved(images))
    of_finite = zip(INPUT_NUMBERS, numbers, strict=True)
    return {name: float(number) for name, number in of_finite if np.isfinite(number)}


def _interleaved(images: Sequence[InputImage]) -> float:
    """How unevenly neighbours differ by their place modulo 3; NaN if that is not known.

    Nor is it of images that were made larger by repeating pixels.
    """
    shape = images[0].values.shape
    if shape[0] != 3 or shape[2] < 8 or any(image.block > 1 for image in images):
        return math.nan
    every = np.stack([image.values[:, ::4] for image in images if image.values.shape == shape])
    apart = np.abs(np.diff(every, axis=3)).mean(0).ravel()
    place = np.arange(math.prod(shape)).reshape(shape)[:, ::4, 1:].ravel() % 3
    means = np.bincount(place, apart) / np.bincount(place)
    return float(means.min() / means.max()) if means.min() > 0 else math.nan


# Numbers of all layers of a step at once, for the run's overview.
#
# The channels of all layers are concatenated and reduced together: a call of NumPy per layer and
# number would take several times as long.

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
        return self.sums(np.where(known, values, 0.0)) / self.sums(known)


def statistics_of_layers(
    every: Sequence[Statistics], channels: Segments, has_moments: Flags
) -> dict[str, Floats]:
    """Columns that follow from the statistics alone, each [layers].

    The mean and std are over the channels of a layer, with equal weight.

    Args:
        every: the statistics of each layer; at least one layer, each of at least one channel.
        channels: the channels of each layer.
        has_moments: bool [layers], False where the mean and std of the channels are not known.
    """
    names = ("minimum", "maximum", "mean", "std", "constant", *_NONFINITE)
    joined = {name: np.concatenate([getattr(each, name) for each in every]) for name in names}
    mean, std = joined["mean"], joined["std"]
    with np.errstate(all="ignore"):
        square = channels.means(mean * mean + std * std)
        centre, square = np.where(has_moments, (channels.means(mean), square), np.nan)
        spread = np.sqrt(np.maximum(square - centre * centre, 0.0))
    return {
        "minimum": np.fmin.reduceat(joined["minimum"], channels.starts),
        "maximum": np.fmax.reduceat(joined["maximum"], channels.starts),
        "mean": centre,
        "std": spread,
        **{name: channels.sums(joined[name]) for name in _NONFINITE},
        "nonfinite": channels.means(np.add.reduce([joined[name] for name in _NONFINITE]) > 0),
        "constant": channels.means(joined["constant"]),
        "counted": np.array([each.counted for each in every], np.float64),
    }


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
        known = {n: changes[one, name] for n, one in enumerate(labels) if (one, name) in changes}
        if known:
            columns[column], columns[age] = np.full((2, len(labels)), np.nan)
            values = [change.values for change in known.values()]
            columns[column][list(known)] = _mean_changes(values, is_exact=name == WEIGHTS)
            columns[age][list(known)] = [step - change.since for change in known.values()]
    return columns


def _mean_changes(arrays: Sequence[Floats], *, is_exact: bool) -> Floats:
    """The mean of each array's finite values; if ``is_exact``, 0 only for an array of zeros."""
    parts = Segments([array.size for array in arrays])
    values = np.concatenate(arrays).astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    with np.errstate(all="ignore"):
        means = parts.means(values)
    if is_exact:
        means[(means == 0) & np.isnan(parts.sums(values))] = np.nan
    means[(means > 0) & (means < _TINY)] = _TINY  # not stored as 0
    return means


Measured = Sequence[tuple[LayerMeasurement, Statistics]]


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
    roles: Mapping[str, tuple[str, ...]],
    measured: Measured,
    followers: Mapping[str, LayerMeasurement],
) -> OverviewLayers:
    """The layers of a step; those of the step before if they are the same.

    Args:
        last: Those of the step before; None at the first.
        roles: Label -> kinds of pictures drawn so far.
        measured: The layers' feature maps, and their statistics.
        followers: Label of a layer -> the activation that follows it.
    """
    calls = [part.layer_call for part, _ in measured]
    sizes = [statistics.minimum.size for _, statistics in measured]
    pixels = [part.planes and part.planes.pixels.shape[:2] for part, _ in measured]
    key = (calls, sizes, pixels, roles)
    if last is not None and last.key == key:
        return last
    facts = tuple(
        _facts(part, size, roles.get(call.label, ()), followers.get(call.label))
        for (part, _), call, size in zip(measured, calls, sizes, strict=True)
    )
    sources = tuple(n for n, (_, numbers) in enumerate(measured) if numbers.dead is not None)
    at = {facts[index].label: place for place, index in enumerate(sources)}
    return OverviewLayers(
        key=key,
        facts=facts,
        packed=pack_layers(facts),
        channels=Segments(sizes),
        sources=sources,
        dead_of=np.array([at.get(each.activation or each.label, -1) for each in facts], np.intp),
        labels=[each.label for each in facts],
        has_moments=np.array([call.pictures for call in calls], bool),
    )


def _facts(
    part: LayerMeasurement, channels: int, roles: tuple[str, ...], follower: LayerMeasurement | None
) -> LayerFacts:
    """What is known about a layer with statistics; ``follower`` is the activation behind it."""
    call, drawn = part.layer_call, (1, 0) if part.planes is None else part.planes.pixels.shape
    return LayerFacts(
        **{name: getattr(call, name) for name in _OF_CALL},
        kernel_shape=None if call.kernel_shape is None else tuple(call.kernel_shape),
        channels=channels,
        values=math.prod(part.shape) // channels,
        drawn=drawn[1],
        samples=drawn[0],
        roles=roles,
        activation=None if follower is None else follower.layer_call.label,
    )


_OF_CALL = ("label", "layer", "type", "call", "position", "transposed_stride", "followed_by")
"""What is stored of a ``LayerCall`` as it is."""


def channel_fractions(layers: OverviewLayers, numbers: Mapping[str, Floats]) -> dict[str, float]:
    """Tag -> fraction of a layer's channels; of dead ones only for activations."""
    fractions: dict[str, float] = {}
    for index, label in enumerate(layers.labels):
        fractions[tags.of(tags.CONSTANT_CHANNELS, label)] = float(numbers["constant"][index])
        fractions[tags.of(tags.NONFINITE, label)] = float(numbers["nonfinite"][index])
        if index in layers.sources:
            fractions[tags.of(tags.DEAD_CHANNELS, label)] = float(numbers["dead"][index])
    return fractions


Ages = Mapping[str, npt.NDArray[np.int64]]
Since = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class OverviewState:
    """What is known from the stored steps; nothing in it is changed in place.

    Attributes:
        steps_written: number of steps.
        layers: those of the last step.
        since: kind -> label -> first step in that state, also of layers not in ``layers``.
        dead_for: label of an activation -> for how many of the steps at which it was measured each
            of its channels has been dead.
        roles: label -> kinds of pictures drawn so far.
        missed: label -> number of steps without pictures, of layers that had any.
    """

    steps_written: int = 0
    layers: OverviewLayers | None = None
    since: Since = field(default_factory=dict)
    dead_for: Ages = field(default_factory=dict)
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
    data, drawn, changes, followers, prefix = step
    measured: Measured = [
        (part, part.statistics)
        for part in data.measured
        if part.kind == "feature_maps" and part.statistics and part.statistics.minimum.size
    ]
    if not measured:
        return state, [], {}
    roles = dict(state.roles)
    for label, pictures in drawn.items():
        kinds = [*roles.get(label, ()), *(tagged.kind for tagged in pictures)]
        roles[label] = tuple(dict.fromkeys(kinds))
    before, many = state.missed, state.steps_written
    missed = {label: before.get(label, many) + (label not in drawn) for label in roles}
    layers = layers_of(state.layers, roles, measured, followers)
    statistics = [numbers for _, numbers in measured]
    numbers = statistics_of_layers(statistics, layers.channels, layers.has_moments)
    numbers |= changes_of_layers(layers.labels, changes, data.step)
    numbers["values"] = [math.prod(part.shape) for part, _ in measured] / layers.channels.sizes
    numbers["missed"] = np.array([missed.get(label, 0) for label in layers.labels])
    dead_for, shares = _dead(state.dead_for, layers, statistics)
    numbers["dead"], numbers["dead_lasting"] = shares[:, layers.dead_of]
    since, present = _since(state.since, layers, numbers, data.step)
    state = OverviewState(state.steps_written + 1, layers, since, dead_for, roles, missed)
    received, written = input_numbers(data.inputs), state.steps_written
    of = OverviewStep(data.step, written, layers.facts, numbers, present, received, data.source)
    blobs = pack_overview(of, layers.packed)
    series = (tags.OVERVIEW, *((tags.FIRST_OVERVIEW,) if written == 1 else ()))
    records = [TabRecord(prefix + tag, blobs) for tag in series]
    return state, records, channel_fractions(layers, numbers)


def _dead(
    before: Ages, layers: OverviewLayers, statistics: Sequence[Statistics]
) -> tuple[Ages, Floats]:
    """``dead_for`` with another step, and which share of the channels is dead, and lastingly so.

    The shares are [2, sources + 1]; the last column is NaN, for layers without dead channels.
    """
    dead_for, shares = dict(before), np.full((2, len(layers.sources) + 1), np.nan)
    for place, index in enumerate(layers.sources):
        dead, label = statistics[index].dead, layers.labels[index]
        assert dead is not None  # it is one of the sources
        ages = before.get(label)
        if ages is None or ages.size != dead.size:
            ages = np.zeros(dead.size, np.int64)
        dead_for[label] = (ages + 1) * dead
        lasting = dead_for[label] >= LASTING
        shares[:, place] = np.count_nonzero([dead, lasting], axis=1) / dead.size
    return dead_for, shares


def _since(
    before: Since, layers: OverviewLayers, numbers: Mapping[str, Floats], step: int
) -> tuple[Since, dict[str, dict[int, int]]]:
    """Since when layers are in each kind of state.

    Returns:
        By label, of all layers ever in that state; and by index, of those that are in it now.
    """
    every, present = dict(before), {}
    own = is_activation(layers.facts, numbers["dead"])
    for kind, codes in states(numbers, own).items():
        spells, now = dict(before.get(kind, {})), {}
        for index in np.flatnonzero(~np.isnan(numbers[_KNOWN_BY[kind]])).tolist():
            if codes[index]:
                begun = step - int(numbers["weights_steps"][index]) if kind == "unchanged" else step
                now[index] = spells.setdefault(layers.labels[index], begun)
            else:
                spells.pop(layers.labels[index], None)
        every[kind], present[kind] = spells, now
    return every, present


_KNOWN_BY = dict(
    zip(KINDS, ("nonfinite", "minimum", "dead", "constant", "weights_change"), strict=True)
)
"""State -> the column that is NaN where it is not known."""
