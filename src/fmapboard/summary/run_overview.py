"""The run's overview: one record per logged step with the state of every layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fmapboard import tags
from fmapboard.overview_format import (
    KINDS,
    LASTING,
    OverviewStep,
    pack_overview,
    states,
)
from fmapboard.records import Floats, LayerMeasurement, StepData, TabRecord, TaggedPictures
from fmapboard.summary.channel_change import Changes
from fmapboard.summary.input_numbers import with_input
from fmapboard.summary.layer_numbers import changes_of_layers, statistics_of_layers
from fmapboard.summary.overview_layers import (
    OverviewLayers,
    channel_fractions,
    has_numbers,
    layers_of,
)

Ages = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _State:
    """What is known from the steps before; nothing in it is changed in place.

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


class RunOverview:
    """Builds the overview of one run, step by step; used by one thread at a time.

    Args:
        prefix: Prefix of every tag.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._state = self._before = _State()

    def __call__(
        self,
        data: StepData,
        drawn: Sequence[TaggedPictures],
        changes: Mapping[str, Changes],
        followers: Mapping[str, LayerMeasurement],
    ) -> tuple[list[TabRecord], dict[str, float]]:
        """Build the record and, at the first step, the same once more in a series of its own.

        A step at which no feature maps were measured has no record.

        Args:
            data: The measurements.
            drawn: The pictures of layers and kernels.
            changes: Label of a layer -> its changes.
            followers: Label of a layer -> the activation that follows it.

        Returns:
            The records; and the scalars that the same numbers give, without the prefix.
        """
        self._before = self._state
        measured = [part for part in data.measured if has_numbers(part)]
        if not measured:
            return [], {}
        of = self._overview(data.step, measured, drawn, changes, followers)
        assert self._state.layers is not None  # set by `_overview`
        of = replace(with_input(of, data.inputs), source=data.source)
        blobs = pack_overview(of, self._state.layers.packed)
        series = (tags.OVERVIEW, *((tags.FIRST_OVERVIEW,) if of.steps_written == 1 else ()))
        records = [TabRecord(self._prefix + tag, blobs) for tag in series]
        return records, channel_fractions(self._state.layers, of.numbers)

    def undo(self) -> None:
        """Discard the last step, which could not be stored."""
        self._state = self._before

    def _overview(
        self,
        step: int,
        measured: Sequence[LayerMeasurement],
        drawn: Sequence[TaggedPictures],
        changes: Mapping[str, Changes],
        followers: Mapping[str, LayerMeasurement],
    ) -> OverviewStep:
        """The numbers of a step; also moves the state on by this step."""
        before = _with_pictures(self._state, drawn)
        layers = layers_of(before.layers, before.roles, measured, followers)
        statistics = [part.statistics for part in measured if part.statistics is not None]
        numbers = statistics_of_layers(statistics, layers.channels, layers.has_moments)
        numbers |= changes_of_layers(layers.labels, changes, step)
        dead_for, parked = before.dead_for, before.parked
        if layers is not self._state.layers:
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
        since = _since(before.since, layers, numbers, step)
        self._state = replace(
            before,
            steps_written=before.steps_written + 1,
            layers=layers,
            dead_for=dead_for,
            parked=parked,
            since={kind: every for kind, (every, _) in since.items()},
        )
        now = {kind: present for kind, (_, present) in since.items()}
        return OverviewStep(step, self._state.steps_written, layers.facts, numbers, now)


def _with_pictures(state: _State, drawn: Sequence[TaggedPictures]) -> _State:
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


def _moved(state: _State, layers: OverviewLayers) -> tuple[Ages, Mapping[str, Ages]]:
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
) -> dict[str, tuple[dict[str, int], dict[int, int]]]:
    """Kind -> since when, by label of all layers ever in that state, and by index of those now."""
    own = layers.dead_of >= 0
    own[[index for index, facts in enumerate(layers.facts) if facts.activation is not None]] = False
    found = {kind: (dict(earlier), dict[int, int]()) for kind, earlier in before.items()}
    for kind, flags in states(numbers, own).items():
        earlier = before.get(kind, {})
        if not earlier and not flags.any():
            continue
        where = np.flatnonzero(flags).tolist()
        begun = np.full(len(flags), step)
        if kind == "unchanged":
            begun = step - np.nan_to_num(numbers["weights_steps"]).astype(np.int64)
        known = ~np.isnan(numbers[_KNOWN_BY[kind]])
        over = {layers.facts[i].label for i in np.flatnonzero(known & ~flags).tolist()}
        present = {i: earlier.get(layers.facts[i].label, int(begun[i])) for i in where}
        every = {label: first for label, first in earlier.items() if label not in over}
        every |= {layers.facts[index].label: first for index, first in present.items()}
        found[kind] = every, present
    return found


_KNOWN_BY = dict(
    zip(KINDS, ("nonfinite", "minimum", "dead", "constant", "weights_change"), strict=True)
)
"""State -> the column that is NaN where it is not known."""
