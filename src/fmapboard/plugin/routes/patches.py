"""Patches: which layers of a run have crops that excite their channels, and those of one layer."""

from __future__ import annotations

from typing import Any

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError, unpack
from fmapboard.plugin.data_source import IMAGES, Point, Reader
from fmapboard.plugin.http import Answer, Query, container, long_answer, missing

_FIRST_PICTURE = 2
"""Index of the first picture in an Images series, after its width and height."""

_LAYOUT = ("rows", "left", "top", "across", "down")


def patches(reader: Reader, query: Query) -> Answer:
    """``data/patches``: the layers with patches, each with its steps; may be empty."""
    run = query.text("run")
    found = [tag for tag in reader.tags(run).get(run, ()) if tag.startswith(tags.PATCHES)]
    kept = reader.points(PLUGIN_NAME, run, found) if found else {}
    series = [
        {
            "key": tags.RECORD + tag.removeprefix(tags.PATCHES),
            "steps": [point.step for point in points],
            "wall_times": [point.wall_time for point in points],
        }
        for tag, points in ((tag, _newest(kept.get(tag, ()))) for tag in sorted(found))
        if points
    ]
    return long_answer({"run": run, "series": series})


def layer_patches(reader: Reader, query: Query) -> Answer:
    """``data/layer_patches``: header, arrays and one picture of a layer's patches at a step.

    The query has the ``key`` of the layer's records, the ``step``, and the ``page``: which picture.
    """
    run, key = query.text("run"), query.text("key")
    step, page, stamp = query.whole("step"), query.whole("page", 0), query.stamp()
    tag = tags.PATCHES + key.removeprefix(tags.RECORD)
    points = _newest(reader.points(PLUGIN_NAME, run, [tag]).get(tag, ()))
    point = next((point for point in points if point.step == step), None)
    if point is None or not key.startswith(tags.RECORD):
        raise missing(f"no patches of {key!r} at step {step} in run {run!r}")
    blobs = reader.blobs([(point, 0), (point, 1)])
    try:
        header, _ = unpack([blob or b"" for blob in blobs])
        _check(header["picture"])
        picture = str(header["picture"]["tag"])
    except (FormatError, LookupError, TypeError, ValueError) as error:
        raise missing(f"the patches of {key!r} cannot be read: {error}") from error
    png = _picture(reader, point, picture, page)
    facts = {"header": header, "step": step, "page": page, "arrays": header["arrays"]}
    return container(facts, [blobs[1] or b"", png], lasting=stamp == point.wall_time)


def _newest(points: Any) -> list[Point]:
    """The last of the points of each step, ascending by step."""
    of_step: dict[int, Point] = {}
    for point in points:
        known = of_step.get(point.step)
        if len(point.blobs) > 1 and (known is None or known.wall_time <= point.wall_time):
            of_step[point.step] = point
    return [of_step[step] for step in sorted(of_step)]


def _check(picture: Any) -> None:
    """Check the layout of the pictures, by which the tab cuts out a channel."""
    numbers = [*picture["cell"], *(picture[name] for name in _LAYOUT)]
    if len(picture["cell"]) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in numbers):
        raise ValueError(f"invalid layout {numbers}")
    if min(*picture["cell"], picture["rows"], picture["down"]) < 1:
        raise ValueError(f"invalid layout {numbers}")


def _picture(reader: Reader, record: Point, tag: str, page: int) -> bytes:
    """A picture that was written together with a record; empty if it is not kept."""
    for point in reader.points(IMAGES, record.run, [tag]).get(tag, ()):
        is_there = 0 <= page < len(point.blobs) - _FIRST_PICTURE
        if is_there and (point.step, point.wall_time) == (record.step, record.wall_time):
            (png,) = reader.blobs([(point, _FIRST_PICTURE + page)], keep=False)
            return png or b""
    return b""
