"""Health of every layer of a run at one step: range, non-finite values, dead channels, change."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmapboard.plugin.data_source import Point, Reader
from fmapboard.plugin.http import Answer, Query, missing
from fmapboard.plugin.layer_series import Series, nearest, series_of
from fmapboard.plugin.stored_record import NONFINITE, Record, read_record, statistics
from fmapboard.plugin.tag_names import natural
from fmapboard.tab_format import Floats, FormatError


def overview(reader: Reader, query: Query) -> Answer:
    """``data/overview``: each layer's health at its last kept step up to the requested one.

    If all kept steps of a layer are later, the first of them is used.
    """
    run, step = query.text("run"), query.whole("step")
    every = sorted(series_of(reader, run), key=lambda series: natural(series.layer.key))
    if not every:
        raise missing(f"no feature maps in run {run!r}")
    pairs = [_now_and_before(series, step) for series in every]
    blobs = iter(reader.blobs([(point, i) for pair in pairs for point in pair for i in (0, 1)]))
    listed = []
    for series, pair in zip(every, pairs, strict=True):
        read = [_read(next(blobs), next(blobs)) for _ in pair]
        listed.append({"key": series.layer.key, "step": pair[0].step, **_health(*read)})
    return Answer({"step": step, "layers": listed})


def _now_and_before(series: Series, step: int) -> list[Point]:
    points = series.points
    index = nearest(points, step)
    return [points[index], *points[max(0, index - 1) : index]]


def _read(header: bytes | None, arrays: bytes | None) -> Record | FormatError:
    try:
        return read_record(header, arrays)
    except FormatError as error:
        return error


def _health(
    now: Record | FormatError, before: Record | FormatError | None = None
) -> dict[str, Any]:
    if isinstance(now, FormatError):
        return {**_UNKNOWN, "error": str(now)}
    arrays = statistics(now, "feature_maps")
    if not arrays:
        return _UNKNOWN
    maps = now.header.maps
    then = statistics(before, "feature_maps") if isinstance(before, Record) else {}
    return {
        **_layer_wide(arrays),
        **{name: int(arrays[name].sum()) for name in NONFINITE},
        "counted": maps is None or maps.counted,
        "channels_nonfinite": int((arrays["nonfinite"] > 0).sum()),
        "channels_constant": int(arrays["constant"].sum()),
        "channels_dead": int(arrays["dead"].sum()) if "dead" in arrays else 0,
        "dead_known": "dead" in arrays,
        "channels": len(arrays["mean"]),
        "change": _change(arrays, then) if then else None,
    }


_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(["minimum", "maximum", "mean", "std", *NONFINITE]),
    **dict.fromkeys(["channels_nonfinite", "channels_constant", "channels_dead", "change"]),
    "dead_known": False,
    "counted": True,
    "channels": 0,
}


def _layer_wide(arrays: Mapping[str, Floats]) -> dict[str, float]:
    """Minimum, maximum, mean and std over all channels, equally weighted; NaN if none is finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # if no channel is finite
        spread = np.nanmean(arrays["std"] ** 2) + np.nanvar(arrays["mean"])
        return {
            "minimum": float(np.nanmin(arrays["minimum"])),
            "maximum": float(np.nanmax(arrays["maximum"])),
            "mean": float(np.nanmean(arrays["mean"])),
            "std": float(np.sqrt(spread)),
        }


def _change(now: Mapping[str, Floats], before: Mapping[str, Floats]) -> float | None:
    """Change of the channel means since the previous kept step, averaged over channels.

    The unit is the channel's previous standard deviation; if that is 0, the magnitude of its
    previous mean; if that is 0 too, 1. Channels without a finite change are left out.
    """
    shared = min(len(now["mean"]), len(before["mean"]))
    mean, std = before["mean"][:shared], before["std"][:shared]
    unit = np.where(std > 0, std, np.where(mean != 0, np.abs(mean), 1.0))
    moved = np.abs(now["mean"][:shared] - mean) / unit
    moved = moved[np.isfinite(moved)]
    return float(moved.mean()) if moved.size else None
