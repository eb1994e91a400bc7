"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from typing import Any

from fmapboard.formats.overview import LayerFacts, source_text
from fmapboard.formats.tab_records import FormatError
from fmapboard.health.table import rows_of
from fmapboard.plugin.data_source import IMAGES, Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing
from fmapboard.plugin.layer_series import Kept, Series, series_of
from fmapboard.plugin.overview_series import ModelOverview, run_overview, unread_step
from fmapboard.plugin.stored_record import ROLES, Header, headers_at
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
    listed += _from_records(reader, every)
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
    of_model, written = _kept(model.kept), model.newest.steps_written
    listed = []
    for row in rows:
        series = own.get(row.key or "")
        kept = of_model if series is None else _kept(series)
        steps = max(_steps_written(written, missed.get(row.facts.label)), len(kept["steps"]))
        listed.append(_entry(row.key, row.name, row.facts, kept, steps))
    return listed


def _steps_written(steps: int, missed: float | None) -> int:
    """Number of records of a layer; a damaged number of missed ones counts as none."""
    return steps - int(missed) if missed is not None and 0 <= missed <= steps else steps


def _from_records(reader: Reader, every: list[Series]) -> list[dict[str, Any]]:
    """Layers of which the overview does not tell, from their last record and their first."""
    ends = [point for series in every for point in (series.points[-1], series.points[0])]
    headers = iter(headers_at(reader, ends))
    listed = []
    for series in every:
        both = next(headers), next(headers)
        known = [header for header in both if isinstance(header, Header)]
        kept = _kept(series)
        # A restarted run starts counting at 1 again.
        written = max([len(kept["steps"]), *(header.steps_written for header in known[:1])])
        error = str(both[0]) if isinstance(both[0], FormatError) else None
        facts = _facts(series.layer.label, known)
        listed.append(_entry(series.layer.key, series.layer.name, facts, kept, written, error))
    return listed


def _facts(label: str, known: list[Header]) -> LayerFacts:
    """What the first header of a layer says, with the roles of all."""
    if not known:
        return LayerFacts(label, label, "", None, 1, 2**31, channels=0, values=0)
    own, maps = known[0], known[0].maps
    return LayerFacts(
        label,
        own.layer,
        own.type,
        None if own.kernel_shape is None else tuple(own.kernel_shape),
        own.call,
        own.position,
        channels=0 if maps is None else maps.channels or 0,
        values=0,
        drawn=0 if maps is None else maps.drawn or 0,
        samples=1 if maps is None else maps.samples,
        roles=tuple(picture.role for header in known for picture in header.pictures),
        activation=own.activation,
    )


def _kept(series: Kept) -> dict[str, Any]:
    """The steps that can be shown of a series."""
    points = series.points
    return {
        "steps": tuple(point.step for point in points),
        "wall_times": tuple(point.wall_time for point in points),
        "step_from_first": series.first_step_is_restored,
    }


def _entry(
    key: str | None,
    name: str,
    facts: LayerFacts,
    kept: dict[str, Any],
    written: int,
    error: str | None = None,
) -> dict[str, Any]:
    """A layer as it is sent."""
    return {
        "key": key,
        "name": name,
        "label": facts.label,
        **kept,
        "error": error,
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
        "steps_written": written,
    }


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
