"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from typing import Any

from fmapboard.checks.health_table import rows_of
from fmapboard.formats.overview import source_text
from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.data_source import IMAGES, Point, Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.overview_series import run_overview, unread_step
from fmapboard.plugin.overview_table import ModelOverview
from fmapboard.plugin.stored_record import ROLES, Header, read_header
from fmapboard.plugin.tag_names import input_tag, layer_of, natural

_MAX_SAMPLES = 64
"""Input images per model that are looked up."""


def layers(reader: Reader, query: Query) -> Answer:
    """``data/layers``: the layers of a run in network order, and its inputs.

    A layer lists its steps and their times only if they are not those of the answer. What the
    overview series tells of a layer is not read from its records. ``unread`` is that of
    ``data/findings``.
    """
    run = query.text("run")
    overview = run_overview(reader, run)
    listed = [one for model in overview.models for one in _from_overview(reader, run, model)]
    told = {one["key"] for one in listed}
    found = {layer.key for layer in map(layer_of, overview.tags) if layer is not None}
    every = series_of(reader, run, found - told)  # without feature maps: their kernels were drawn
    headers = _headers(reader, every)
    listed += [_layer(series, *headers[series.layer.key]) for series in every]
    if not listed:
        raise missing(f"no feature maps in run {run!r}")
    listed.sort(
        key=lambda layer: (
            *(natural(layer["name"]), layer["position"], layer["call"]),
            natural(layer["label"]),
        )
    )
    written = max(layer["steps_written"] for layer in listed)
    inputs = _inputs(reader, run, listed)
    unread = None
    for model in overview.models[:1]:
        times = [point.wall_time for point in model.points]
        unread = unread_step(reader, run, model.name, times)
    words = {
        str(step): source_text(source, step)
        for model in overview.models
        for step, source in model.sources.items()
    }
    whole: dict[str, Any] = {"run": run, "layers": listed, "inputs": inputs}
    whole |= {**_shared_steps(listed), "step_words": words}
    return long_answer({**whole, "steps_written": written, "unread": unread})


def _shared_steps(listed: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The steps of all layers and their times; removes them from the layers that have the same."""
    times: dict[int, float] = {}
    unique = {id(layer["steps"]): (layer["steps"], layer["wall_times"]) for layer in listed}
    for kept, of in unique.values():
        times.update(zip(kept, of, strict=True))
    steps = tuple(sorted(times))
    wall_times = tuple(times[step] for step in steps)
    for layer in listed:
        if (layer["steps"], layer["wall_times"]) == (steps, wall_times):
            del layer["steps"], layer["wall_times"]
    return {"steps": list(steps), "wall_times": list(wall_times)}


def _from_overview(reader: Reader, run: str, model: ModelOverview) -> list[dict[str, Any]]:
    """The layers of a model whose feature maps are drawn."""
    rows = [row for row in rows_of(model.name, model.layers) if "feature_maps" in row.facts.roles]
    missed = model.newest_column("missed")
    # A layer that had no record at some steps is kept at other steps than the overview.
    with_gaps = [row.key for row in rows if row.key and missed.get(row.facts.label) != 0]
    own = {series.layer.key: series for series in series_of(reader, run, with_gaps)}
    steps = tuple(point.step for point in model.points)
    wall_times = tuple(point.wall_time for point in model.points)
    written, is_restored = model.newest.steps_written, model.kept.first_step_is_restored
    listed = []
    for row in rows:
        facts, series = row.facts, own.get(row.key or "")
        points = None if series is None else series.points
        count = len(steps if points is None else points)
        listed.append(
            {
                "key": row.key,
                "name": row.name,
                "label": facts.label,
                "steps": steps if points is None else tuple(p.step for p in points),
                "wall_times": wall_times if points is None else tuple(p.wall_time for p in points),
                "step_from_first": series.first_step_is_restored if series else is_restored,
                "error": None,
                "layer": facts.layer,
                "call": facts.call,
                "type": facts.type,
                "kernel_shape": facts.kernel_shape,
                "position": facts.position,
                "channels": facts.channels,
                "drawn": facts.drawn,
                "samples": facts.samples,
                "roles": [role for role in ROLES if role in facts.roles],
                "activation": facts.activation,
                "steps_written": max(_steps_written(written, missed.get(facts.label)), count),
            }
        )
    return listed


def _steps_written(steps: int, missed: float | None) -> int:
    """Number of records of a layer; a damaged number of missed ones counts as none."""
    return steps - int(missed) if missed is not None and 0 <= missed <= steps else steps


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
        "steps": tuple(point.step for point in points),
        "wall_times": tuple(point.wall_time for point in points),
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
