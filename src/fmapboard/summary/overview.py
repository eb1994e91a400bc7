"""The run's overview, a file of its own for its format: every layer's state, per logged step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
    states,
)
from fmapboard.records import (
    Floats,
    InputImage,
    LayerMeasurement,
    Statistics,
    StepData,
    TabRecord,
    TaggedPictures,
)
from fmapboard.summary.change import WEIGHTS, Changes


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
        numbers = (spread.min(), spread.max(), spread.mean(), spread.std())
    of_finite = zip(INPUT_NUMBERS, numbers, strict=False)
    return lost | {name: float(number) for name, number in of_finite if np.isfinite(number)}


# Numbers of all layers of a step at once, for the run's overview.
#
# The channels of all layers are concatenated and reduced together: a call of NumPy per layer and
# number would take several times as long.

Counts = npt.NDArray[np.intp]
_NONFINITE = ("nan", "positive_infinity", "negative_infinity")
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive parts of a concatenated array.

    Attributes:
        sizes: length of each part, at least 1.
        starts: index of the first element of each part.
    """

    sizes: Counts
    starts: Counts

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Segments:
        """The parts of an array that is concatenated from arrays of these sizes."""
        lengths = np.array(sizes, np.intp)
        return cls(lengths, np.cumsum(lengths) - lengths)

    def shares(self, flags: Flags) -> Floats:
        """The share of flags in each part that are set."""
        if not self.sizes.size or not flags.any():
            return np.zeros(self.sizes.size)
        shares: Floats = np.add.reduceat(flags, self.starts, dtype=np.intp) / self.sizes
        return shares

    def sums(self, values: Floats) -> Floats:
        """The sum of each part."""
        sums: Floats = np.add.reduceat(values, self.starts)
        return sums

    def means(self, values: Floats) -> Floats:
        """The mean of the values of each part that are not NaN; NaN if all are."""
        sums = self.sums(values)
        if not np.isnan(sums).any():
            return sums / self.sizes
        known = ~np.isnan(values)
        count = np.add.reduceat(known, self.starts, dtype=np.intp)
        return self.sums(np.where(known, values, 0.0)) / count


def statistics_of_layers(
    every: Sequence[Statistics], channels: Segments, has_moments: Flags
) -> dict[str, Floats]:
    """Columns that follow from the statistics alone, each [layers].

    Args:
        every: the statistics of each layer; at least one layer, each of at least one channel.
        channels: the channels of each layer.
        has_moments: bool [layers], False where the mean and std of the channels are not known.
    """
    counts = [np.concatenate([getattr(each, name) for each in every]) for name in _NONFINITE]
    with np.errstate(all="ignore"):
        minimum = np.concatenate([each.minimum for each in every])
        maximum = np.concatenate([each.maximum for each in every])
        columns: dict[str, Floats] = {
            "minimum": np.fmin.reduceat(minimum, channels.starts),
            "maximum": np.fmax.reduceat(maximum, channels.starts),
            **_moments(every, has_moments),
        }
    is_finite = not any(values.any() for values in counts)
    none = np.zeros(len(every))
    for name, values in zip(_NONFINITE, counts, strict=True):
        columns[name] = none if is_finite else np.add.reduceat(values, channels.starts) * 1.0
    bad = counts[0] + counts[1] + counts[2] > 0 if not is_finite else None
    return {
        **columns,
        "nonfinite": none if bad is None else channels.shares(bad),
        "constant": channels.shares(np.concatenate([each.constant for each in every])),
        "counted": np.array([each.counted for each in every], np.float64),
    }


def _moments(every: Sequence[Statistics], is_known: Flags) -> dict[str, Floats]:
    """Mean and std over the channels of each layer, with equal weight, where they are known."""
    columns: dict[str, Floats] = {name: np.full(len(every), np.nan) for name in ("mean", "std")}
    known = [every[index] for index in np.flatnonzero(is_known).tolist()]
    if known:
        channels = Segments.of([each.mean.size for each in known])
        mean = np.concatenate([each.mean for each in known])
        std = np.concatenate([each.std for each in known])
        centre = channels.means(mean)
        second = channels.means(mean * mean + std * std)
        columns["mean"][is_known] = centre
        columns["std"][is_known] = np.sqrt(np.maximum(second - centre * centre, 0.0))
    return columns


def changes_of_layers(
    labels: Sequence[str], changes: Mapping[str, Changes], step: int
) -> dict[str, Floats]:
    """Columns with the mean change of each layer's maps and weights, and since how many steps.

    The mean is over the channels with a finite change, and NaN if there are none. That of weights
    is 0 only if the change of each channel is 0.
    """
    columns: dict[str, Floats] = {}
    for column, age, name in (
        ("change", "change_steps", "feature_maps"),
        ("weights_change", "weights_steps", WEIGHTS),
    ):
        known = [
            (index, changed.arrays[name], step - changed.since[name])
            for index, label in enumerate(labels)
            if (changed := changes.get(label)) is not None and name in changed.arrays
        ]
        if not known:
            continue
        columns[column], columns[age] = np.full((2, len(labels)), np.nan)
        where = [index for index, _, _ in known]
        columns[column][where] = _mean_changes(
            [array for _, array, _ in known], is_exact=name == WEIGHTS
        )
        columns[age][where] = [steps for _, _, steps in known]
    return columns


def _mean_changes(arrays: Sequence[Floats], *, is_exact: bool) -> Floats:
    """The mean of each array's finite values; if ``is_exact``, 0 only for an array of zeros."""
    parts = Segments.of([array.size for array in arrays])
    values = np.concatenate(arrays).astype(np.float64)
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        if finite.all():
            means = parts.sums(values) / parts.sizes
        else:
            count = np.add.reduceat(finite, parts.starts, dtype=np.intp)
            means = parts.sums(np.where(finite, values, 0.0)) / count
            if is_exact:
                means[(means == 0) & (count < parts.sizes)] = np.nan
    means[(means > 0) & (means < _TINY)] = _TINY  # not stored as 0
    return means


class OverviewLayers(NamedTuple):
    """The measured layers of a step, which seldom differ from those of the step before.

    Attributes:
        key: what all other fields follow from.
        facts: see ``LayerFacts``.
        packed: blob 2.
        channels: channels of each layer.
        sources: index of each layer whose statistics have dead channels: the activations.
        dead_channels: channels of these.
        dead_of: index in ``sources`` of each layer's own activation or the one that follows, or -1.
        labels: label of each layer.
        has_moments: True for layers whose means are known.
    """

    key: tuple[object, ...]
    facts: tuple[LayerFacts, ...]
    packed: bytes
    channels: Segments
    sources: tuple[int, ...]
    dead_channels: Segments
    dead_of: npt.NDArray[np.intp]
    labels: list[str]
    has_moments: Flags


def layers_of(
    last: OverviewLayers | None,
    roles: Mapping[str, tuple[str, ...]],
    measured: Sequence[LayerMeasurement],
    followers: Mapping[str, LayerMeasurement],
) -> OverviewLayers:
    """The layers of a step; those of the step before if they are the same.

    Args:
        last: Those of the step before; None at the first.
        roles: Label -> kinds of pictures drawn so far.
        measured: The layers' feature maps.
        followers: Label of a layer -> the activation that follows it.
    """
    calls = [part.layer_call for part in measured]
    sizes = [part.statistics.minimum.size for part in measured if part.statistics is not None]
    pixels = [None if part.planes is None else part.planes.pixels.shape[:2] for part in measured]
    key = (calls, sizes, pixels, roles)
    if last is not None and last.key == key:
        return last
    facts = tuple(_facts(part, roles, followers.get(part.layer_call.label)) for part in measured)
    sources = tuple(
        index
        for index, part in enumerate(measured)
        if part.statistics is not None and part.statistics.dead is not None
    )
    at = {facts[index].label: place for place, index in enumerate(sources)}
    return OverviewLayers(
        key=key,
        facts=facts,
        packed=pack_layers(facts),
        channels=Segments.of(sizes),
        sources=sources,
        dead_channels=Segments.of([sizes[index] for index in sources]),
        dead_of=np.array([at.get(each.activation or each.label, -1) for each in facts], np.intp),
        labels=[each.label for each in facts],
        has_moments=np.array([call.pictures for call in calls], bool),
    )


def _facts(
    part: LayerMeasurement,
    roles: Mapping[str, tuple[str, ...]],
    follower: LayerMeasurement | None,
) -> LayerFacts:
    """What is known about a layer with statistics; ``follower`` is the activation behind it."""
    call, statistics = part.layer_call, part.statistics
    assert statistics is not None
    channels = statistics.minimum.size
    drawn = None if part.planes is None else part.planes.pixels.shape
    return LayerFacts(
        label=call.label,
        layer=call.layer,
        type=call.type,
        kernel_shape=None if call.kernel_shape is None else tuple(call.kernel_shape),
        call=call.call,
        position=call.position,
        channels=channels,
        values=math.prod(part.shape) // channels,
        drawn=drawn[1] if drawn else 0,
        samples=drawn[0] if drawn else 1,
        roles=roles.get(call.label, ()),
        activation=None if follower is None else follower.layer_call.label,
        transposed_stride=call.transposed_stride,
    )


def channel_fractions(layers: OverviewLayers, numbers: Mapping[str, Floats]) -> dict[str, float]:
    """Tag -> fraction of a layer's channels; of dead ones only for activations."""
    columns = (numbers[name].tolist() for name in ("constant", "nonfinite"))
    dead = dict.fromkeys(layers.sources, 0.0)
    if dead:
        dead = dict(zip(dead, numbers["dead"][list(dead)].tolist(), strict=True))
    fractions: dict[str, float] = {}
    for index, (label, constant, nonfinite) in enumerate(zip(layers.labels, *columns, strict=True)):
        fractions[tags.of(tags.CONSTANT_CHANNELS, label)] = constant
        fractions[tags.of(tags.NONFINITE, label)] = nonfinite
        if index in dead:
            fractions[tags.of(tags.DEAD_CHANNELS, label)] = dead[index]
    return fractions


def has_numbers(part: LayerMeasurement) -> bool:
    """True for feature maps with statistics."""
    statistics = part.statistics
    return part.kind == "feature_maps" and statistics is not None and statistics.minimum.size > 0


Ages = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OverviewState:
    """What is known from the stored steps; nothing in it is changed in place.

    Attributes:
        steps_written: number of steps.
        layers: those of the last step.
        since: kind -> label -> first step in that state, also of layers not in ``layers``.
        dead_for: for how many steps each channel of ``layers.sources`` has been dead.
        parked: the same, by label, for activations that are not in ``layers``.
        roles: label -> kinds of pictures drawn so far.
        missed: label -> number of steps without pictures.
    """

    steps_written: int = 0
    layers: OverviewLayers | None = None
    since: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    dead_for: Ages = field(default_factory=lambda: np.zeros(0, np.int64))
    parked: Mapping[str, Ages] = field(default_factory=dict)
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)


def overview(
    state: OverviewState,
    data: StepData,
    drawn: Sequence[TaggedPictures],
    changes: Mapping[str, Changes],
    followers: Mapping[str, LayerMeasurement],
    prefix: str,
) -> tuple[OverviewState, list[TabRecord], dict[str, float]]:
    """Build the record of a step and, at the first step, the same once more in a series of its own.

    A step at which no feature maps were measured has no record.

    Args:
        state: What is known from the steps before.
        data: The measurements.
        drawn: The pictures of layers and kernels.
        changes: Label of a layer -> its changes.
        followers: Label of a layer -> the activation that follows it.
        prefix: Prefix of every tag.

    Returns:
        The state after this step; the records; and the scalars that the same numbers give, without
        the prefix.
    """
    measured = [part for part in data.measured if has_numbers(part)]
    if not measured:
        return state, [], {}
    before = _with_pictures(state, drawn)
    layers = layers_of(before.layers, before.roles, measured, followers)
    statistics = [part.statistics for part in measured if part.statistics is not None]
    numbers = statistics_of_layers(statistics, layers.channels, layers.has_moments)
    numbers |= changes_of_layers(layers.labels, changes, data.step)
    dead_for, parked = before.dead_for, before.parked
    if layers is not state.layers:
        dead_for, parked = _moved(before, layers)
    numbers["values"] = [math.prod(part.shape) for part in measured] / layers.channels.sizes
    numbers["missed"] = np.array([before.missed.get(label, 0) for label in layers.labels])
    if layers.sources:
        flags = [statistics[index].dead for index in layers.sources]
        dead = np.concatenate([each for each in flags if each is not None])
        dead_for = (dead_for + 1) * dead
        for column, found in (("dead", dead), ("dead_lasting", dead_for >= LASTING)):
            shares = np.append(layers.dead_channels.shares(found), np.nan)
            numbers[column] = shares[layers.dead_of]
    since, present = _since(before.since, layers, numbers, data.step)
    state = replace(
        before,
        steps_written=before.steps_written + 1,
        layers=layers,
        dead_for=dead_for,
        parked=parked,
        since=since,
    )
    of = OverviewStep(
        data.step,
        state.steps_written,
        layers.facts,
        numbers,
        present,
        network_input=input_numbers(data.inputs),
        source=data.source,
    )
    blobs = pack_overview(of, layers.packed)
    series = (tags.OVERVIEW, *((tags.FIRST_OVERVIEW,) if of.steps_written == 1 else ()))
    records = [TabRecord(prefix + tag, blobs) for tag in series]
    return state, records, channel_fractions(layers, numbers)


def _with_pictures(state: OverviewState, drawn: Sequence[TaggedPictures]) -> OverviewState:
    """The state with the kinds of pictures, and the layers without any, of another step."""
    roles, shown = state.roles, set()
    for tagged in drawn:
        assert tagged.layer_call is not None  # `drawn` holds no network input
        label = tagged.layer_call.label
        shown.add(label)
        if tagged.kind not in roles.get(label, ()):
            roles = {**roles, label: (*roles.get(label, ()), tagged.kind)}
    if roles is state.roles and shown == roles.keys():
        return state
    missed = {
        **state.missed,
        **dict.fromkeys(roles.keys() - state.roles.keys(), state.steps_written),
    }
    missed |= {label: missed[label] + 1 for label in roles.keys() - shown}
    return replace(state, roles=roles, missed=missed)


def _moved(state: OverviewState, layers: OverviewLayers) -> tuple[Ages, Mapping[str, Ages]]:
    """``dead_for`` and ``parked`` for the layers of another step."""
    known = dict(state.parked)
    if state.layers is not None and state.layers.sources:
        ends = np.split(state.dead_for, state.layers.dead_channels.starts[1:])
        labels = [state.layers.facts[index].label for index in state.layers.sources]
        known.update(zip(labels, ends, strict=True))
    ages = []
    for index, size in zip(layers.sources, layers.dead_channels.sizes, strict=True):
        kept = known.pop(layers.facts[index].label, None)
        ages.append(kept if kept is not None and kept.size == size else np.zeros(size, np.int64))
    return (np.concatenate(ages) if ages else np.zeros(0, np.int64)), known


def _since(
    before: Mapping[str, Mapping[str, int]],
    layers: OverviewLayers,
    numbers: Mapping[str, Floats],
    step: int,
) -> tuple[dict[str, Mapping[str, int]], dict[str, Mapping[int, int]]]:
    """Since when layers are in each kind of state.

    Returns:
        By label, of all layers ever in that state; and by index, of those that are in it now.
    """
    own = layers.dead_of >= 0
    own[[index for index, facts in enumerate(layers.facts) if facts.activation is not None]] = False
    every: dict[str, Mapping[str, int]] = dict(before)
    present: dict[str, Mapping[int, int]] = {kind: {} for kind in before}
    for kind, flags in states(numbers, own).items():
        earlier = before.get(kind, {})
        if not earlier and not flags.any():
            continue
        begun = np.full(len(flags), step)
        if kind == "unchanged":
            begun = step - np.nan_to_num(numbers["weights_steps"]).astype(np.int64)
        known = ~np.isnan(numbers[_KNOWN_BY[kind]])
        over = {layers.labels[index] for index in np.flatnonzero(known & ~flags).tolist()}
        now = {
            index: earlier.get(layers.labels[index], int(begun[index]))
            for index in np.flatnonzero(flags).tolist()
        }
        kept = {label: first for label, first in earlier.items() if label not in over}
        every[kind] = kept | {layers.labels[index]: first for index, first in now.items()}
        present[kind] = now
    return every, present


_KNOWN_BY = dict(
    zip(KINDS, ("nonfinite", "minimum", "dead", "constant", "weights_change"), strict=True)
)
"""State -> the column that is NaN where it is not known."""
