"""Health of every layer of a run at one step: range, non-finite values, dead channels, change."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing, spelled
from fmapboard.plugin.layer_series import nearest, series_of
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.step_health import NO_CHANGE, UNKNOWN, health_at
from fmapboard.plugin.stored_record import WEIGHTS, change, read_record
from fmapboard.plugin.tag_names import layer_of, natural


def overview(reader: Reader, query: Query) -> Answer:
    """``data/overview``: each layer's health at its last kept step up to the requested one.

    If all kept steps of a layer are later, the first of them is used. Counts are of all channels.
    Of a layer without feature maps, such as one that was not called and has only its kernels drawn,
    the change of its weights is known.
    """
    run, step = query.text("run"), query.whole("step")
    found = run_overview(reader, run)
    told = [one for model in found.models for one in health_at(model, step)]
    keys = {layer.key for layer in map(layer_of, found.tags) if layer is not None}
    every = series_of(reader, run, keys - {one["key"] for one in told})
    if not every and not told:
        raise missing(f"no feature maps in run {run!r}")
    points = [series.points[nearest(series.points, step)] for series in every]
    blobs = iter(reader.blobs([(point, i) for point in points for i in (0, 1)]))
    listed = [
        {
            "key": series.layer.key,
            "step": point.step,
            **UNKNOWN,
            **_weights_change(next(blobs), next(blobs)),
        }
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


def _weights_change(header: bytes | None, arrays: bytes | None) -> dict[str, Any]:
    """The recorded change of a layer's weights, or why the record cannot be read.

    ``change`` is the mean over channels, NaN if it is finite for none.
    ``weights_unchanged_since`` is a step if the stored change of each channel is exactly 0.
    """
    try:
        record = read_record(header, arrays)
    except FormatError as error:
        return {"error": str(error)}
    values = change(record, WEIGHTS)
    if values is None:
        return NO_CHANGE
    finite, since = values[np.isfinite(values)], record.header.change_since[WEIGHTS]
    return {
        "change": float(finite.mean()) if finite.size else float("nan"),
        "change_of": "weights",
        "change_since": since,
        "weights_unchanged_since": None if values.any() else since,
    }
