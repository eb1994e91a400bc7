"""Statistics of a layer's channels over the steps that TensorBoard keeps."""

from __future__ import annotations

import numpy as np

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query, bad, container, missing
from fmapboard.plugin.layer_series import requested_series
from fmapboard.plugin.stored_record import WEIGHTS, Record, change, records_at, statistics

_ROLES = ("feature_maps", "gradients_of_maps", "inputs")
_CHANGES = ("feature_maps", "inputs", WEIGHTS)
_SHOWN = ("minimum", "maximum", "mean", "std", "lo", "hi", "nonfinite", "constant", "dead")


def history(reader: Reader, query: Query) -> Answer:
    """``data/history``: float32 arrays [steps, drawn], NaN where a step has no value.

    ``weights.change`` is [steps, 1] if it is that of the whole layer. ``lo`` and ``hi`` are those
    of the maps of ``sample``, 0 by default; all other statistics are of the whole batch.
    ``kernels`` lists the steps at which the layer's kernels were drawn, with their largest
    magnitude.
    """
    stamp, sample = query.stamp(), query.whole("sample", 0)
    if sample < 0:
        raise bad(f"the query's sample must not be negative, but is {sample}")
    points = requested_series(reader, query).points
    found = records_at(reader, points)
    records = [None if isinstance(record, FormatError) else record for record in found]
    rows = [{} if record is None else _row(record, sample) for record in records]
    if not any(rows):
        raise missing(f"no record of {points[0].tag!r} can be read")
    if sample and not any(record and _draws(record, sample) for record in records):
        raise missing(f"no sample {sample} in the records of {points[0].tag!r}")
    names = [
        f"{role}.{what}"
        for role in _ROLES
        for what in _SHOWN
        if any(f"{role}.{what}" in row for row in rows)
    ]
    names += [f"{name}.change" for name in _CHANGES if any(f"{name}.change" in row for row in rows)]
    tables = [_table([row.get(name) for row in rows]) for name in names]
    facts = {
        "steps": [point.step for point in points],
        "wall_times": [point.wall_time for point in points],
        "kernels": [
            {"step": point.step, "peak": picture.get("peak")}
            for point, record in zip(points, records, strict=True)
            if record is not None
            for picture in record.header.raw["pictures"]
            if picture["role"] == "kernels"
        ],
        "arrays": [
            {"name": name, "shape": list(table.shape)}
            for name, table in zip(names, tables, strict=True)
        ],
    }
    packed = [table.astype("<f4").tobytes() for table in tables]
    return container(facts, packed, lasting=stamp == points[-1].wall_time)


def _draws(record: Record, sample: int) -> bool:
    return any(sample < picture.samples for picture in record.header.pictures)


def _row(record: Record, sample: int) -> dict[str, Floats]:
    """Name of a statistic -> its values at one step, [drawn]."""
    row: dict[str, Floats] = {}
    for role in _ROLES:
        for what, values in statistics(record, role).items():
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
    widest = max((len(row) for row in rows if row is not None), default=0)
    table = np.full((len(rows), widest), np.nan)
    for at, row in enumerate(rows):
        if row is not None:
            table[at, : len(row)] = row
    return table
