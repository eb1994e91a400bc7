"""Health of the layers of a run without an overview series, from its scalars and records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmapboard.checks.health_table import HealthRow, HealthTable, rows_of
from fmapboard.formats import tags
from fmapboard.formats.overview import COLUMNS, LayerFacts
from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.data_source import Point, Reader
from fmapboard.plugin.first_nonfinite import first_nonfinite
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.record_health import layer_wide, mean_change
from fmapboard.plugin.stored_record import (
    WEIGHTS,
    Header,
    Record,
    change,
    read_header,
    read_record,
    statistics,
)
from fmapboard.plugin.tag_names import natural

SCALARS = {
    "nonfinite": tags.NONFINITE, "dead": tags.DEAD_CHANNELS, "constant": tags.CONSTANT_CHANNELS,
}  # fmt: skip
MAX_SERIES = 1500
"""Scalar series that are read: the kinds are dropped from the last one on until they fit."""
MAX_RECORDS = 2500
"""Records that are read for their extremes."""

Shares = dict[tuple[str, str], dict[str, dict[int, float]]]
"""Name of the model and label of a layer -> kind -> step -> share of channels."""


def read_shares(reader: Reader, run: str, prefixes: Iterable[str]) -> tuple[Shares, list[str]]:
    """The shares of channels that scalars tell of, and the kinds that were looked for."""
    groups = {p + group: (p, kind) for p in prefixes for kind, group in SCALARS.items()}
    wanted: dict[str, list[tuple[str, tuple[str, str]]]] = {kind: [] for kind in SCALARS}
    for tag in reader.scalar_tags(run):
        group, _, label = tag.partition("/")
        prefix, kind = groups.get(group, ("", ""))
        if kind:
            wanted[kind].append((tag, (prefix.removesuffix("."), label)))
    kinds = [kind for kind in SCALARS if wanted[kind]]
    while kinds and sum(len(wanted[kind]) for kind in kinds) > MAX_SERIES:
        kinds.pop()
    data = reader.scalars(run, [tag for kind in kinds for tag, _ in wanted[kind]]) if kinds else {}
    shares: Shares = defaultdict(lambda: defaultdict(dict))
    for kind in kinds:
        for tag, layer in wanted[kind]:
            shares[layer][kind] = {datum.step: datum.value for datum in data.get(tag, ())}
    return shares, kinds


def recorded_health(reader: Reader, run: str) -> HealthTable | None:
    """The health of a run's layers at the steps of its records; None if there are none."""
    every = series_of(reader, run)
    if not every:
        return None
    times = {point.step: point.wall_time for series in every for point in series.points}
    steps = tuple(sorted(times))
    prefixes = sorted({series.layer.prefix for series in every})
    headers = _newest_headers(reader, every)
    shares, _ = read_shares(reader, run, prefixes)
    points = [(series, point) for series in every for point in series.points]
    has_records = len(points) <= MAX_RECORDS
    drawn = {(s.layer.name, s.layer.label): _facts(s, headers[s.layer.key]) for s in every}
    rows = _rows(drawn, shares)
    columns = {name: np.full((len(steps), len(rows)), np.nan) for name in COLUMNS}
    at = {step: index for index, step in enumerate(steps)}
    row_of = {(row.name, row.facts.label): index for index, row in enumerate(rows)}
    if has_records:
        _add_records(reader, points, columns, at, row_of)
    _add_shares(shares, rows, columns, at, row_of)
    return HealthTable(
        run=run,
        source="records" if has_records else "scalars",
        steps=steps,
        written=max(len(steps), *(h.steps_written for h in headers.values() if h is not None), 0),
        rows=rows,
        columns=columns,
        since={},
        first_nonfinite=first_nonfinite(reader, run, prefixes),
        wall_times=tuple(times[step] for step in steps),
    )


def _newest_headers(reader: Reader, every: Sequence[Series]) -> dict[str, Header | None]:
    """Key -> the newest header, or None if it cannot be read."""
    blobs = reader.blobs([(series.points[-1], 0) for series in every])
    found: dict[str, Header | None] = {}
    for series, blob in zip(every, blobs, strict=True):
        try:
            found[series.layer.key] = read_header(blob)
        except FormatError:
            found[series.layer.key] = None
    return found


def _facts(series: Series, header: Header | None) -> LayerFacts:
    label = series.layer.label
    if header is None:
        return LayerFacts(label, label, "", None, 1, 2**31, 0, 0, roles=("feature_maps",))
    maps, shape = header.maps, header.kernel_shape
    return LayerFacts(
        label=label,
        layer=header.layer,
        type=header.type,
        kernel_shape=None if shape is None else tuple(shape),
        call=header.call,
        position=header.position,
        channels=(maps.channels or 0) if maps else 0,
        values=0,
        drawn=(maps.drawn or 0) if maps else 0,
        samples=maps.samples if maps else 1,
        roles=tuple(picture.role for picture in header.pictures) or ("feature_maps",),
        activation=header.activation,
    )


def _rows(drawn: Mapping[tuple[str, str], LayerFacts], shares: Shares) -> tuple[HealthRow, ...]:
    """The drawn layers in network order, each with the activation after it, then the others."""
    of_name: defaultdict[str, list[LayerFacts]] = defaultdict(list)
    for (name, _), facts in drawn.items():
        of_name[name].append(facts)
    rows: list[HealthRow] = []
    for name in sorted({*of_name, *(name for name, _ in shares)}, key=natural):
        others = {label: _measured(label) for of, label in shares if of == name}
        ordered: list[LayerFacts] = []
        for facts in sorted(of_name[name], key=lambda f: (f.position, f.call, natural(f.label))):
            others.pop(facts.label, None)
            ordered.append(facts)
            if facts.activation in others:
                after = others.pop(facts.activation)
                ordered.append(replace(after, position=facts.position, channels=facts.channels))
        ordered += [others[label] for label in sorted(others, key=natural)]
        rows += rows_of(name, ordered)
    return tuple(rows)


def _measured(label: str) -> LayerFacts:
    """What the name of a scalar tells of a layer without records."""
    layer, _, call = label.rpartition(".call")
    if not layer or not call.isdecimal() or len(call) > 9:
        layer, call = label, "1"
    return LayerFacts(label, layer, "", None, int(call), 2**31, 0, 0)


def _add_records(
    reader: Reader,
    points: Sequence[tuple[Series, Point]],
    columns: Mapping[str, Floats],
    at: Mapping[int, int],
    row_of: Mapping[tuple[str, str], int],
) -> None:
    """Add what the records tell of the drawn channels."""
    blobs = iter(reader.blobs([(point, i) for _, point in points for i in (0, 1)]))
    for series, point in points:
        try:
            record = read_record(next(blobs), next(blobs))
        except FormatError:
            continue
        place = at[point.step], row_of[series.layer.name, series.layer.label]
        for name, value in _numbers(record).items():
            columns[name][place] = value


def _numbers(record: Record) -> dict[str, float]:
    """Column -> its value for the drawn channels."""
    numbers: dict[str, float] = {}
    for column, name in (("change", "feature_maps"), ("weights_change", WEIGHTS)):
        values = change(record, name)
        if values is not None:
            numbers[column] = mean_change(values)
    arrays = statistics(record, "feature_maps")
    if arrays and arrays["mean"].size:
        numbers |= layer_wide(arrays)
        numbers["nonfinite"] = float((arrays["nonfinite"] > 0).mean())
        numbers |= {name: float(arrays[name].mean()) for name in ("constant", "dead")
                    if name in arrays}  # fmt: skip
    return numbers


def _add_shares(
    shares: Shares,
    rows: Sequence[HealthRow],
    columns: Mapping[str, Floats],
    at: Mapping[int, int],
    row_of: Mapping[tuple[str, str], int],
) -> None:
    """Replace shares of the drawn channels by those of all channels, where scalars tell them."""
    for layer, kinds in shares.items():
        for kind, values in kinds.items():
            for step, value in values.items():
                if step in at:
                    columns[kind][at[step], row_of[layer]] = value
    for index, row in enumerate(rows):
        after = row_of.get((row.name, row.facts.activation or ""))
        if after is not None:
            known = ~np.isnan(columns["dead"][:, after])
            columns["dead"][known, index] = columns["dead"][known, after]
