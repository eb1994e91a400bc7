"""Health of every layer of a run at one step: range, non-finite values, dead channels, change."""

from __future__ import annotations

from typing import Any

from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing, spelled
from fmapboard.plugin.layer_series import nearest, series_of
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.record_health import layer_wide, mean_change
from fmapboard.plugin.step_health import NO_CHANGE, UNKNOWN, health_at
from fmapboard.plugin.stored_record import (
    NONFINITE,
    WEIGHTS,
    Record,
    change,
    read_record,
    statistics,
)
from fmapboard.plugin.tag_names import layer_of, natural


def overview(reader: Reader, query: Query) -> Answer:
    """``data/overview``: each layer's health at its last kept step up to the requested one.

    If all kept steps of a layer are later, the first of them is used. Counts are of all channels if
    the run has an overview series, otherwise of the drawn ones.
    """
    run, step = query.text("run"), query.whole("step")
    found = run_overview(reader, run)
    told = [one for model in found.models for one in health_at(model, step)]
    if found.models:
        keys = {layer.key for layer in map(layer_of, found.tags) if layer is not None}
        every = series_of(reader, run, keys - {one["key"] for one in told})
    else:
        every = series_of(reader, run)
    if not every and not told:
        raise missing(f"no feature maps in run {run!r}")
    points = [series.points[nearest(series.points, step)] for series in every]
    blobs = iter(reader.blobs([(point, i) for point in points for i in (0, 1)]))
    listed = [
        {"key": series.layer.key, "step": point.step, **_health(_read(next(blobs), next(blobs)))}
        for series, point in zip(every, points, strict=True)
    ]
    ordered = sorted([*told, *listed], key=lambda layer: natural(layer["key"]))
    return long_answer({"step": step, "layers": [_plain(layer) for layer in ordered]})


def _plain(layer: dict[str, Any]) -> dict[str, Any]:
    """The entry with its non-finite numbers as strings."""
    for name in ("minimum", "maximum", "mean", "std", "change"):
        if layer[name] is not None:
            layer[name] = spelled(layer[name])
    return layer


def _read(header: bytes | None, arrays: bytes | None) -> Record | FormatError:
    try:
        return read_record(header, arrays)
    except FormatError as error:
        return error


def _health(record: Record | FormatError) -> dict[str, Any]:
    if isinstance(record, FormatError):
        return {**UNKNOWN, "error": str(record)}
    arrays = statistics(record, "feature_maps")
    if not arrays:
        return {**UNKNOWN, **_change(record)}
    maps = record.header.maps
    return {
        **layer_wide(arrays),
        **{name: int(arrays[name].sum()) for name in NONFINITE},
        "counted": maps is None or maps.counted,
        "channels_nonfinite": int((arrays["nonfinite"] > 0).sum()),
        "channels_constant": int(arrays["constant"].sum()),
        "channels_dead": int(arrays["dead"].sum()) if "dead" in arrays else 0,
        "dead_known": "dead" in arrays,
        "channels": len(arrays["mean"]),
        **_change(record),
    }


def _change(record: Record) -> dict[str, Any]:
    """The recorded change: that of the maps if it is known, otherwise that of the weights.

    ``change`` is the mean over channels, NaN if it is finite for none, None if it was not recorded.
    ``weights_unchanged_since`` is a step if the stored change of each channel is exactly 0.
    """
    since, weights = record.header.change_since, change(record, WEIGHTS)
    unchanged_since = since[WEIGHTS] if weights is not None and not weights.any() else None
    for name, of in (("feature_maps", "maps"), (WEIGHTS, "weights")):
        values = change(record, name)
        if values is not None:
            return {
                "change": mean_change(values),
                "change_of": of,
                "change_since": since[name],
                "weights_unchanged_since": unchanged_since,
            }
    return NO_CHANGE
