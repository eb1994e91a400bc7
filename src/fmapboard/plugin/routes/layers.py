"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from typing import Any

from fmapboard.plugin.data_source import IMAGES, Point, Reader
from fmapboard.plugin.http import Answer, Query, missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.stored_record import ROLES, Header, read_header
from fmapboard.plugin.tag_names import input_tag, natural
from fmapboard.tab_format import FormatError

_MAX_SAMPLES = 64
"""Input images per model that are looked up."""


def layers(reader: Reader, query: Query) -> Answer:
    """``data/layers``: the layers of a run in network order, and its inputs."""
    run = query.text("run")
    every = series_of(reader, run)
    if not every:
        raise missing(f"no feature maps in run {run!r}")
    headers = _headers(reader, every)
    listed = [_layer(series, *headers[series.layer.key]) for series in every]
    listed.sort(
        key=lambda layer: (
            *(natural(layer["name"]), layer["position"], layer["call"]),
            natural(layer["label"]),
        )
    )
    steps = sorted({step for layer in listed for step in layer["steps"]})
    written = max(layer["steps_written"] for layer in listed)
    inputs = _inputs(reader, run, listed)
    whole = {"run": run, "layers": listed, "inputs": inputs, "steps": steps}
    return Answer({**whole, "steps_written": written})


def _headers(reader: Reader, every: list[Series]) -> dict[str, list[Header | FormatError]]:
    """Key -> the headers of the layer's last record and, if there are several, of its first."""
    ends = [(s.layer.key, point) for s in every for point in _ends(s.points)]
    blobs = reader.blobs([(point, 0) for _, point in ends])
    found: dict[str, list[Header | FormatError]] = {s.layer.key: [] for s in every}
    for (key, _), blob in zip(ends, blobs, strict=True):
        found[key].append(_read(blob))
    return found


def _ends(points: list[Point]) -> list[Point]:
    return [points[-1], points[0]] if len(points) > 1 else points


def _read(blob: bytes | None) -> Header | FormatError:
    try:
        return read_header(blob)
    except FormatError as error:
        return error


def _layer(
    series: Series, last: Header | FormatError, first: Header | FormatError | None = None
) -> dict[str, Any]:
    points = series.points
    said: dict[str, Any] = {
        "key": series.layer.key,
        "name": series.layer.name,
        "label": series.layer.label,
        "steps": [point.step for point in points],
        "wall_times": [point.wall_time for point in points],
        "step_from_first": series.first_step_is_restored,
        "error": str(last) if isinstance(last, FormatError) else None,
    }
    known = last if isinstance(last, Header) else first
    if not isinstance(known, Header):
        return {**said, **_UNKNOWN, "layer": series.layer.label, "steps_written": len(points)}
    roles = {p.role for end in (last, first) if isinstance(end, Header) for p in end.pictures}
    maps = known.maps
    return {
        **said,
        "layer": known.layer,
        "call": known.call,
        "type": known.type,
        "kernel_shape": known.kernel_shape,
        "position": known.position,
        "channels": maps.channels if maps else 0,
        "drawn": maps.drawn if maps else 0,
        "samples": maps.samples if maps else 1,
        "roles": [role for role in ROLES if role in roles],
        "activation": known.activation,
        # A restarted run starts counting at 1 again.
        "steps_written": max(known.steps_written, len(points)),
    }


_UNKNOWN: dict[str, Any] = {
    "call": 1, "type": "", "kernel_shape": None, "position": 2**31, "channels": 0, "drawn": 0,
    "samples": 1, "roles": [], "activation": None,
}  # fmt: skip


def _inputs(reader: Reader, run: str, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The series of the network's inputs, one per model and drawn sample."""
    samples: dict[str, int] = {}
    for layer in listed:
        samples[layer["name"]] = max(samples.get(layer["name"], 1), layer["samples"])
    requested = {
        input_tag(name, sample): (name, sample)
        for name in samples
        for sample in range(min(samples[name], _MAX_SAMPLES))
    }
    found = reader.points(IMAGES, run, requested)
    return [
        {
            "name": name,
            "sample": sample,
            "steps": [point.step for point in found[tag]],
            "wall_times": [point.wall_time for point in found[tag]],
        }
        for tag, (name, sample) in requested.items()
        if found.get(tag)
    ]
