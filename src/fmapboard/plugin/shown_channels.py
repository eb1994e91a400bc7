"""The channel that stands for a layer where only one is shown, the same in the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.health.states import MOSTLY_CONSTANT, worst_states
from fmapboard.health.table import HealthTable
from fmapboard.plugin.layer_series import Series
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.stored_record import Record, channel_codes, records_at, statistics
from fmapboard.runs.provider import Point, Provider

_BYTES = 500
"""Of a choice in memory."""
_At = tuple[str, int]
"""Tag and step of a record."""


class _Choice(NamedTuple):
    """The channel that was chosen for a layer.

    Attributes:
        looked_at: the points whose records were read.
        channel: the channel; None if none is drawn.
    """

    looked_at: tuple[Point, ...]
    channel: int | None


class _Samples(NamedTuple):
    """Where a layer is looked at to choose its channel.

    Attributes:
        faulty: the first point in the most severe state; None if single channels are never to
            blame.
        code: that state.
        sampled: the 1st, 2nd, 5th, 17th, … kept point.
    """

    faulty: Point | None
    code: int
    sampled: tuple[Point, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """All of them, the faulty one first."""
        return self.sampled if self.faulty is None else (self.faulty, *self.sampled)


def shown_channels(provider: Provider, run: str, layers: Sequence[Series]) -> list[int | None]:
    """The channel that is shown of each layer; None if no channel is drawn.

    If the layer has non-finite or large values, or half of its channels are dead or constant, it is
    one that is itself in the most severe of these states at the first kept step. Of several, and
    of a sound layer, it is the one with the largest mean of its standard
    deviation, relative to that of the others, over the 1st, 2nd, 5th, 17th, … kept step: a run that
    grows rarely gets another one.
    """
    table = run_overview(provider, run).table
    samples = [_samples(series, table) for series in layers]

    @cache
    def records() -> dict[_At, Record]:
        """Those of all layers, in one request; made if the channel of one is not known."""
        points = {_at(point): point for sample in samples for point in sample.points}
        found = zip(points, records_at(provider, list(points.values())), strict=True)
        return {at: record for at, record in found if not isinstance(record, FormatError)}

    def shown(series: Series, looked_at: _Samples) -> int | None:
        def build(last: _Choice | None) -> _Choice:
            if last is not None and last.looked_at == looked_at.points:
                return last
            return _Choice(looked_at.points, _channel(looked_at, records()))

        return provider.built(("shown", run, series.layer.key), build, lambda _: _BYTES).channel

    return [shown(*pair) for pair in zip(layers, samples, strict=True)]


def _samples(series: Series, table: HealthTable | None) -> _Samples:
    points = series.points
    faulty, code = _first_faulty(points, series, table)
    places = [0, *(4**power for power in range(len(points).bit_length()))]
    sampled = [points[place] for place in places if place < len(points)]
    return _Samples(faulty, code, tuple(sampled))


def _at(point: Point) -> _At:
    return point.tag, point.step


def _channel(samples: _Samples, records: Mapping[_At, Record]) -> int | None:
    """The channel that is shown, given the records that can be read."""
    sampled = [records.get(_at(point)) for point in samples.sampled]
    spreads = [_spread(record) for record in sampled if record is not None]
    guilty = None
    at_fault = None if samples.faulty is None else records.get(_at(samples.faulty))
    if at_fault is not None:
        guilty = _guilty(at_fault, samples.code)
    return _largest([spread for spread in spreads if len(spread)], guilty)


def _first_faulty(
    points: Sequence[Point], series: Series, table: HealthTable | None
) -> tuple[Point | None, int]:
    """The first point in the most severe state of the layer, and the code of that state.

    None if the layer is never in a state that single channels are to blame for.
    """
    row = None if table is None else table.index(series.layer.name, series.layer.label)
    if table is None or row is None:
        return None, 0
    numbers = {name: column[:, row] for name, column in table.columns.items()}
    codes = worst_states(
        numbers, np.zeros(1, bool), (len(table.steps),), is_of_images=table.is_of_images
    )
    by_step = dict(zip(table.steps, codes.tolist(), strict=True))
    known = [by_step.get(point.step, 0) for point in points]
    worst = max(known, default=0)
    if worst < MOSTLY_CONSTANT:
        return None, worst
    return points[known.index(worst)], worst


def _guilty(record: Record, code: int) -> npt.NDArray[np.bool_] | None:
    """bool [drawn]: which channels are in a state; None if no drawn one is."""
    maps = record.header.maps
    numbers = {} if maps is None else statistics(record, maps.role)
    if not numbers:
        return None
    is_guilty: npt.NDArray[np.bool_] = channel_codes(numbers, is_of_images=False) == code
    return is_guilty if is_guilty.any() else None


def _spread(record: Record) -> Floats:
    """The standard deviation of each drawn channel, relative to their mean; 0 if not stored."""
    maps = record.header.maps
    if maps is None or not maps.drawn:
        return np.empty(0)
    stored = record.arrays.get(f"{maps.role}.std", np.zeros(maps.drawn))
    spread = np.asarray(stored, np.float64)
    is_known = np.isfinite(spread)
    mean = spread[is_known].mean() if is_known.any() else 0.0
    return spread / mean if mean > 0 else spread


def _largest(spreads: Sequence[Floats], guilty: npt.NDArray[np.bool_] | None) -> int | None:
    """The channel with the largest mean of what is finite, of the guilty ones if there are any."""
    if not spreads:
        return None
    most = max(len(spread) for spread in spreads)
    total = np.zeros(most)
    count = np.zeros(most)
    for spread in spreads:
        channels = len(spread)
        is_known = np.isfinite(spread)
        total[:channels] += np.where(is_known, spread, 0)
        count[:channels] += is_known
    mean = total / np.maximum(count, 1)
    if guilty is not None:
        mean[: len(guilty)][~guilty[:most]] = -1
        mean[len(guilty) :] = -1
    return int(mean.argmax())
