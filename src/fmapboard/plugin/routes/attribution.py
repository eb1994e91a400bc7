"""Attribution: which series a run has, with the steps and gradient norms of each; one picture."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError, refuse_newer
from fmapboard.plugin.data_source import IMAGES, Point, Reader
from fmapboard.plugin.http import Answer, Query, long_answer, missing
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.tag_names import natural

_PICTURE = 2
"""Index of the picture's blob, in an Images series and in a first-step record."""

_SAMPLE = re.compile(r"\d{1,9}", re.ASCII)

_UNKNOWN: dict[str, Any] = {"type": "", "position": 2**31, "size": None, "of": "loss"}


@dataclass(frozen=True, slots=True)
class _Name:
    """The attribution of a sample at a layer call, as its tag names it."""

    name: str
    label: str
    sample: int

    def tag(self, group: str) -> str:
        own = tags.attribution(self.label, self.sample)
        return tags.prefix(self.name) + tags.of(group, own)

    @property
    def first(self) -> str:
        return self.tag(tags.FIRST_ATTRIBUTION.rstrip("/"))


@dataclass(frozen=True, slots=True)
class _Series(Kept):
    """The pictures of one attribution series."""

    of: _Name


def attribution(reader: Reader, query: Query) -> Answer:
    """``data/attribution``: the attribution series of a run in network order; may be empty."""
    run = query.text("run")
    names = [name for name in map(_name, reader.tags_of(IMAGES, run)) if name is not None]
    every = _series(reader, run, names)
    if not every:
        return long_answer({"run": run, "series": []})
    firsts = reader.blobs([(point, 0) for series in every for point in series.firsts[:1]])
    headers = iter(firsts)
    listed = [_listed(series, next(headers) if series.firsts else None) for series in every]
    norms = reader.scalars(run, [s.of.tag(tags.ATTRIBUTION_GRADIENT) for s in every])
    for series, entry in zip(every, listed, strict=True):
        known = {d.step: d.value for d in norms.get(series.of.tag(tags.ATTRIBUTION_GRADIENT), ())}
        at_first = entry.pop("gradient")
        entry["gradients"] = [_finite(known.get(step)) for step in entry["steps"]]
        if entry["first_is_restored"] and entry["gradients"][0] is None:
            entry["gradients"][0] = at_first
    listed.sort(key=lambda e: (natural(e["name"]), e["position"], natural(e["label"]), e["sample"]))
    return long_answer({"run": run, "series": listed})


def attribution_picture(reader: Reader, query: Query) -> Answer:
    """``data/attribution_picture``: PNG of a series, named by its tag ``key``, at a step."""
    run, key, step, stamp = query.text("run"), query.text("key"), query.whole("step"), query.stamp()
    name = _name(key)
    for series in _series(reader, run, [] if name is None else [name]):
        for point in series.points:
            if point.step == step:
                (png,) = reader.blobs([(point, _PICTURE)], keep=False)
                if png:
                    return Answer(png, "image/png", lasting=stamp == point.wall_time)
    raise missing(f"no attribution {key!r} at step {step} in run {run!r}")


def _name(tag: str) -> _Name | None:
    group, _, rest = tag.partition("/")
    name, _, marker = group.rpartition(".")
    label, _, last = rest.rpartition("/")
    number = last.removeprefix("sample_")
    if marker != tags.ATTRIBUTION or not label or last == number or not _SAMPLE.fullmatch(number):
        return None
    return _Name(name, label, int(number))


def _series(reader: Reader, run: str, names: Iterable[_Name]) -> list[_Series]:
    names = list(names)
    if not names:
        return []
    own = reader.points(IMAGES, run, [name.tag(tags.ATTRIBUTION) for name in names])
    firsts = reader.points(PLUGIN_NAME, run, [name.first for name in names])
    every = [
        _Series(_with_picture(own, n.tag(tags.ATTRIBUTION)), _with_picture(firsts, n.first), n)
        for n in names
    ]
    return [series for series in every if series.points]


def _with_picture(points: Mapping[str, list[Point]], tag: str) -> tuple[Point, ...]:
    return tuple(point for point in points.get(tag, ()) if len(point.blobs) > _PICTURE)


def _listed(series: _Series, header: bytes | None) -> dict[str, Any]:
    points = series.points
    return {
        "key": series.of.tag(tags.ATTRIBUTION),
        "name": series.of.name,
        "label": series.of.label,
        "sample": series.of.sample,
        **_facts(header),
        "steps": [point.step for point in points],
        "wall_times": [point.wall_time for point in points],
        "first_is_restored": series.first_step_is_restored,
    }


def _facts(header: bytes | None) -> dict[str, Any]:
    """What the first-step record knows; a damaged or newer one is as none."""
    facts = {**_UNKNOWN, "gradient": None}
    try:
        stored = json.loads(header or b"")
        refuse_newer(stored["format"])
        height, width = map(int, stored["size"])
        return {
            "type": str(stored["type"]),
            "position": int(stored["position"]),
            "size": [height, width],
            "of": stored["of"] if stored["of"] in ("score", "probe") else "loss",
            "gradient": _finite(stored["gradient"]),
        }
    except (FormatError, LookupError, TypeError, ValueError, RecursionError):
        return facts


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
