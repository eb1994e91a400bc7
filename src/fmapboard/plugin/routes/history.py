"""Statistics of a layer's channels over the steps that TensorBoard keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.answers import Binary, Invalid, Missing
from fmapboard.plugin.film_scale import left_out
from fmapboard.plugin.layer_series import Series, requested_series, timeline
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.routes.maps import drawn_at_end
from fmapboard.plugin.shown_channels import shown_channels
from fmapboard.plugin.stored_record import (
    MAPS_ROLES,
    WEIGHTS,
    PictureFacts,
    Record,
    change,
    channel_codes,
    records_at,
    statistics,
)
from fmapboard.runs.provider import Point, Provider

_CHANGES = ("feature_maps", "inputs", WEIGHTS)
_ARRAY = 300
"""Bytes in memory of an array without its values, and of its name."""
_SHOWN = ("minimum", "maximum", "mean", "std", "nonfinite", "constant", "dead", "code")


@dataclass(frozen=True, slots=True)
class DrawnKernels:
    """A step at which the layer's kernels were drawn, and their largest magnitude, if stored."""

    step: int
    peak: float | None


@dataclass(frozen=True, slots=True)
class History(Binary):
    """``data/history``.

    Attributes:
        steps: the steps that can be shown, ascending.
        wall_times: their times, s.
        kernels: the steps at which the layer's kernels were drawn.
        unchanged: the steps at which they had hardly changed since they were drawn.
        shown: the channel that stands for the layer at all steps, see `shown_channels`.
        arrays: name of a statistic -> float [steps, drawn], NaN where a step has no value;
            ``code`` is that of the channel's state, see `health.states`; ``left_out`` and
            ``left_out_of_layer`` say why a locked scale leaves out the step, see `film_scale`;
            ``weights.change`` is [steps, 1] if it is that of the whole layer. Where not all
            channels are drawn, ``layer.minimum``, ``layer.maximum`` and ``layer.nonfinite``
            [steps, 1] are of all of them.
    """

    steps: list[int]
    wall_times: list[float]
    kernels: list[DrawnKernels]
    unchanged: list[int]
    shown: int | None
    arrays: dict[str, Floats]

    @property
    def as_of(self) -> float:
        """The time of the last step, s."""
        return self.wall_times[-1]


def history(provider: Provider, run: str, key: str, sample: int = 0) -> History:
    """Statistics of a layer's channels over the steps.

    Args:
        provider: of the run.
        run: name of the run.
        key: of the layer.
        sample: the one whose ``lo`` and ``hi`` are read; all other statistics are of the batch.

    Raises:
        Invalid: an argument is.
        Missing: there is no such layer or sample.
    """
    if sample < 0:
        raise Invalid(f"the query's sample must not be negative, but is {sample}")
    series = requested_series(provider, run, key)
    points = series.points

    def build(last: _Rows | None) -> _Rows:
        return _read_on(provider, run, points, sample, last or {})

    rows = provider.built(("history", run, key, str(sample)), build, _bytes)
    samples = max((row.samples for row in rows.values()), default=0)
    if not any(row.is_read for row in rows.values()):
        raise Missing(f"no record of {points[0].tag!r} can be read")
    if sample and sample >= samples:
        raise Missing(f"no sample {sample} in the records of {points[0].tag!r}")
    names = dict.fromkeys(name for row in rows.values() for name in row.values)
    arrays: dict[str, Floats] = {}
    for name in names:
        arrays[name] = _table([row.values.get(name) for row in rows.values()])
    arrays |= _left_out(arrays)
    arrays |= _of_all_channels(provider, run, series)
    shown = timeline(points)
    (channel,) = shown_channels(provider, run, [series])
    kernels = [drawn for row in rows.values() for drawn in row.kernels]
    unchanged = [step for (step, _), row in rows.items() if row.earlier_kernels is not None]
    last = points[-1].step
    earlier = rows[last, points[-1].wall_time].earlier_kernels
    if earlier is not None and drawn_at_end(provider, run, last, earlier):
        kernels.append(DrawnKernels(last, earlier.peak_now))
    return History(
        steps=shown.steps,
        wall_times=shown.wall_times,
        kernels=kernels,
        unchanged=unchanged,
        shown=channel,
        arrays=arrays,
    )


def _left_out(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """What the locked scales of each role leave out."""
    found = {}
    for role in MAPS_ROLES:
        ends = [arrays.get(f"{role}.{end}") for end in ("lo", "hi", "code")]
        lo, hi, codes = ends
        if lo is None or hi is None or codes is None:
            continue
        found[f"{role}.left_out"] = left_out(lo, hi, codes, is_of_layer=False)
        found[f"{role}.left_out_of_layer"] = left_out(lo, hi, codes, is_of_layer=True)
    return found


def _of_all_channels(provider: Provider, run: str, series: Series) -> dict[str, Floats]:
    """Numbers of a layer of which not all channels are drawn; empty of others, or if not known."""
    table = run_overview(provider, run).table
    if table is None:
        return {}
    index = table.index(series.layer.name, series.layer.label)
    if index is None:
        return {}
    facts = table.rows[index].facts
    if facts.drawn >= facts.channels:
        return {}
    found: dict[str, Floats] = {}
    for what in ("minimum", "maximum", "nonfinite"):
        numbers = table.columns[what][:, index].tolist()
        known = dict(zip(table.steps, numbers, strict=True))
        shown = [known.get(point.step, np.nan) for point in series.points]
        column = np.array(shown)[:, None]  # [steps, 1]
        found[f"layer.{what}"] = column
    return found


class _Row(NamedTuple):
    """What a record tells.

    Attributes:
        values: name of a statistic -> its values, float32 [drawn].
        kernels: the kernels that were drawn.
        samples: number of samples of its pictures.
        earlier_kernels: an earlier picture of kernels that have hardly changed since.
        is_read: False for a record that cannot be read.
    """

    values: Mapping[str, npt.NDArray[np.float32]]
    kernels: tuple[DrawnKernels, ...] = ()
    samples: int = 0
    earlier_kernels: PictureFacts | None = None
    is_read: bool = True


_BROKEN = _Row({}, is_read=False)
_Rows: TypeAlias = dict[tuple[int, float], _Row]
"""Step, and its wall time in s -> its row, ascending by step."""


def _read_on(
    provider: Provider, run: str, points: Sequence[Point], sample: int, known: _Rows
) -> _Rows:
    """The rows at these points; only records that are new, or could not be read, are read."""
    by_place = {(point.step, point.wall_time): point for point in points}
    rows = {place: known[place] for place in by_place if place in known and known[place].is_read}
    missing = [place for place in by_place if place not in rows]
    records = records_at(provider, [by_place[place] for place in missing])
    is_of_images = run_overview(provider, run).is_of_images
    for place, record in zip(missing, records, strict=True):
        step, _ = place
        rows[place] = _BROKEN
        if not isinstance(record, FormatError):
            rows[place] = _row(record, step, sample, is_of_images=is_of_images)
    return {place: rows[place] for place in by_place}


def _bytes(rows: _Rows) -> int:
    """Of memory, roughly."""
    total = 0
    for row in rows.values():
        total += sum(_ARRAY + values.nbytes for values in row.values.values())
    return total


def _row(record: Record, step: int, sample: int, *, is_of_images: bool) -> _Row:
    """What a record tells of a step."""
    found: dict[str, Floats] = {}
    for role in MAPS_ROLES:
        own = statistics(record, role)
        if own:
            own["code"] = channel_codes(own, is_of_images=is_of_images)
        for what, values in own.items():
            if what in _SHOWN:
                found[f"{role}.{what}"] = values
        for end in ("lo", "hi"):
            planes = record.arrays.get(f"{role}.{end}")
            if planes is not None and sample < len(planes):
                found[f"{role}.{end}"] = planes[sample]
    for name in _CHANGES:
        changes = change(record, name)
        if changes is not None:
            found[f"{name}.change"] = changes
    with np.errstate(over="ignore"):  # as they are sent
        sent = {name: array.astype(np.float32) for name, array in found.items()}
    kernels = []
    for entry in record.raw["pictures"]:
        if entry["role"] == "kernels":
            kernels.append(DrawnKernels(step, entry.get("peak")))
    samples = max((picture.samples for picture in record.header.pictures), default=0)
    return _Row(sent, tuple(kernels), samples, record.header.kernels)


def _table(rows: Sequence[npt.NDArray[np.float32] | None]) -> npt.NDArray[np.float32]:
    """Stack rows into a table [steps, max(drawn)], padded with NaN."""
    lengths = [len(row) for row in rows if row is not None]
    table = np.full((len(rows), max(lengths)), np.nan, np.float32)
    for step, row in enumerate(rows):
        if row is not None:
            table[step, : len(row)] = row
    return table
