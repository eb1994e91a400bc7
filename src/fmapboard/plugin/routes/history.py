"""Statistics of a layer's channels over the steps that TensorBoard keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.answers import Binary, Invalid, Missing
from fmapboard.plugin.layer_series import Series, requested_series, timeline
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.shown_channels import shown_channels
from fmapboard.plugin.stored_record import (
    MAPS_ROLES,
    WEIGHTS,
    Record,
    change,
    channel_codes,
    records_at,
    statistics,
)
from fmapboard.runs.provider import Provider

_CHANGES = ("feature_maps", "inputs", WEIGHTS)
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
        shown: the channel that stands for the layer at all steps, see `shown_channels`.
        arrays: name of a statistic -> float [steps, drawn], NaN where a step has no value;
            ``code`` is that of the channel's state, see `health.states`;
            ``weights.change`` is [steps, 1] if it is that of the whole layer. Where not all
            channels are drawn, ``layer.minimum``, ``layer.maximum`` and ``layer.nonfinite``
            [steps, 1] are of all of them.
    """

    steps: list[int]
    wall_times: list[float]
    kernels: list[DrawnKernels]
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
    records = records_at(provider, points)
    rows: list[dict[str, Floats]] = []
    kernels = []
    samples = 0
    for point, record in zip(points, records, strict=True):
        if isinstance(record, FormatError):
            rows.append({})
            continue
        rows.append(_row(record, sample))
        for picture in record.header.pictures:
            samples = max(samples, picture.samples)
        for entry in record.raw["pictures"]:
            if entry["role"] == "kernels":
                kernels.append(DrawnKernels(point.step, entry.get("peak")))
    if not any(rows):
        raise Missing(f"no record of {points[0].tag!r} can be read")
    if sample and sample >= samples:
        raise Missing(f"no sample {sample} in the records of {points[0].tag!r}")
    names = dict.fromkeys(name for row in rows for name in row)
    arrays = {}
    for name in names:
        values = [row.get(name) for row in rows]
        arrays[name] = _table(values)
    arrays |= _of_all_channels(provider, run, series)
    shown = timeline(points)
    (channel,) = shown_channels(provider, run, [series])
    return History(
        steps=shown.steps,
        wall_times=shown.wall_times,
        kernels=kernels,
        shown=channel,
        arrays=arrays,
    )


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


def _row(record: Record, sample: int) -> dict[str, Floats]:
    """Name of a statistic -> its values at one step, [drawn]."""
    row: dict[str, Floats] = {}
    for role in MAPS_ROLES:
        own = statistics(record, role)
        if own:
            own["code"] = channel_codes(own)
        for what, values in own.items():
            if what in _SHOWN:
                row[f"{role}.{what}"] = values
        for end in ("lo", "hi"):
            planes = record.arrays.get(f"{role}.{end}")
            if planes is not None and sample < len(planes):
                row[f"{role}.{end}"] = planes[sample]
    for name in _CHANGES:
        changes = change(record, name)
        if changes is not None:
            row[f"{name}.change"] = changes
    return row


def _table(rows: list[Floats | None]) -> Floats:
    """Stack rows into a table [steps, max(drawn)], padded with NaN."""
    lengths = [len(row) for row in rows if row is not None]
    table = np.full((len(rows), max(lengths)), np.nan)
    for step, row in enumerate(rows):
        if row is not None:
            table[step, : len(row)] = row
    return table
