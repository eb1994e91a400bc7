"""Health of every layer of a run at one step: range, non-finite values, dead channels, change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fmapboard.formats.overview import COLUMNS, Flags
from fmapboard.formats.tab_records import FormatError
from fmapboard.health.table import rows_of
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing, spelled
from fmapboard.plugin.layer_series import nearest, series_of
from fmapboard.plugin.overview_series import ModelOverview, run_overview
from fmapboard.plugin.stored_record import NONFINITE, WEIGHTS, Record, change, records_at
from fmapboard.plugin.tag_names import layer_of, natural

NO_CHANGE: dict[str, Any] = dict.fromkeys(
    ("change", "change_of", "change_since", "weights_unchanged_since")
)
UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(["minimum", "maximum", "mean", "std", *NONFINITE]),
    **dict.fromkeys(["channels_nonfinite", "channels_constant", "channels_dead"]),
    **NO_CHANGE,
    "dead_known": False,
    "counted": True,
    "channels": 0,
}
_LAYER_WIDE = ("minimum", "maximum", "mean", "std")
_SHARES = ("nonfinite", "constant", "dead")


def health_at(model: ModelOverview, step: int) -> list[dict[str, Any]]:
    """Entries of ``data/overview`` for the layers whose feature maps are drawn.

    Each is from the last kept step up to ``step`` that has the layer, else from the first.
    """
    points = model.points
    at = nearest(points, step)
    if points[at].step in model.errors:
        why = model.errors[points[at].step]
        entries = [{**UNKNOWN, "error": why} for _ in model.layers]
        places = np.full(len(model.layers), at)
    else:
        places = _places(~np.isnan(model.column("counted")), at)
        table = model.numbers[:, places, np.arange(len(model.layers))]  # [columns, layers]
        since = _unchanged_since(model)
        entries = [
            _entry(dict(zip(COLUMNS, numbers, strict=True)), layer.channels, points[place].step)
            for layer, numbers, place in zip(
                model.layers, table.T.tolist(), places.tolist(), strict=True
            )
        ]
        for layer, entry in zip(model.layers, entries, strict=True):
            first = since.get(layer.label)
            unchanged = entry["weights_unchanged_since"]
            if unchanged is not None and first is not None and first < unchanged:
                entry["weights_unchanged_since"] = first
    return [
        {"key": row.key, "step": points[place].step, **entry}
        for row, entry, place in zip(
            rows_of(model.name, model.layers), entries, places.tolist(), strict=True
        )
        if "feature_maps" in row.facts.roles
    ]


def _places(known: Flags, at: int) -> npt.NDArray[np.intp]:
    """Index of the last step up to ``at`` that is known, else of the first one, for each layer.

    Args:
        known: bool [steps, layers].
        at: index of a step.
    """
    before = known[: at + 1]
    last = at - before[::-1].argmax(0)
    places: npt.NDArray[np.intp] = np.where(before.any(0), last, known.argmax(0))
    return places


def _unchanged_since(model: ModelOverview) -> dict[str, int]:
    """Label -> since which step the weights are the same, up to the newest step."""
    newest = model.newest
    among = newest.since.get("unchanged", {})
    return {newest.layers[index].label: step for index, step in among.items()}


def _entry(numbers: dict[str, float], channels: int, step: int) -> dict[str, Any]:
    if math.isnan(numbers["counted"]):
        return UNKNOWN
    shares = {name: min(max(_number(numbers[name]), 0.0), 1.0) for name in _SHARES}
    return {
        **{name: numbers[name] for name in _LAYER_WIDE},
        **{name: int(_number(numbers[name])) for name in NONFINITE},
        "counted": numbers["counted"] != 0,
        **{f"channels_{name}": round(share * channels) for name, share in shares.items()},
        "dead_known": not math.isnan(numbers["dead"]),
        "channels": channels,
        **_change(numbers, step),
    }


def _number(value: float) -> float:
    """A number from a record that may hold anything; 0 for NaN and infinities."""
    return value if math.isfinite(value) else 0.0


def _change(numbers: dict[str, float], step: int) -> dict[str, Any]:
    """The change of the maps if it is known, otherwise that of the weights."""
    ages = (numbers["change_steps"], numbers["weights_steps"])
    maps, weights = (None if math.isnan(age) else step - int(_number(age)) for age in ages)
    if maps is None and weights is None:
        return NO_CHANGE
    return {
        "change": numbers["change" if maps is not None else "weights_change"],
        "change_of": "weights" if maps is None else "maps",
        "change_since": weights if maps is None else maps,
        "weights_unchanged_since": weights if numbers["weights_change"] == 0 else None,
    }


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
    listed = [
        {
            "key": series.layer.key,
            "step": point.step,
            **UNKNOWN,
            **_weights_change(record),
        }
        for series, point, record in zip(every, points, records_at(reader, points), strict=True)
    ]
    ordered = sorted([*told, *listed], key=lambda layer: natural(layer["key"]))
    return long_answer({"step": step, "layers": [_plain(layer) for layer in ordered]})


def _plain(layer: dict[str, Any]) -> dict[str, Any]:
    """The entry with its non-finite numbers as strings."""
    for name in ("minimum", "maximum", "mean", "std", "change"):
        if layer[name] is not None:
            layer[name] = spelled(layer[name])
    return layer


def _weights_change(record: Record | FormatError) -> dict[str, Any]:
    """The recorded change of a layer's weights, or why the record cannot be read.

    ``change`` is the mean over channels, NaN if it is finite for none.
    ``weights_unchanged_since`` is a step if the stored change of each channel is exactly 0.
    """
    if isinstance(record, FormatError):
        return {"error": str(record)}
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
