"""Patches: which layers of a run have crops that excite their channels, and those of one layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, Floats, FormatError, typed, unpack
from fmapboard.plugin.answers import Answer, Binary, Missing
from fmapboard.plugin.layer_series import point_at, timeline
from fmapboard.plugin.routes.maps import FIRST_PICTURE
from fmapboard.runs.provider import IMAGES, Point, Provider

_MAX_NUMBER = 2**31 - 1
"""Maximum of the numbers of a layout, px or counts."""


@dataclass(frozen=True, slots=True)
class PatchesSeries:
    """Where the patches of a layer are: steps, and wall times in s.

    Attributes:
        key: tag of the layer's own records.
    """

    key: str
    steps: list[int]
    wall_times: list[float]


@dataclass(frozen=True, slots=True)
class Patches(Answer):
    """``data/patches``: the layers with patches; may be empty."""

    run: str
    series: list[PatchesSeries]


@dataclass(frozen=True, slots=True)
class LayerPatches(Binary):
    """``data/layer_patches``: header, arrays and one picture of a layer's patches at a step.

    Attributes:
        header: of the record, as stored.
        step: number of the step.
        page: which picture.
        arrays: of the record.
        png: the picture; empty if it is not kept.
        as_of: see `Answer`.
    """

    header: dict[str, Any]
    step: int
    page: int
    arrays: Mapping[str, Floats]
    png: bytes
    as_of: float | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the crops are in the pictures of a record, by which the tab cuts them out."""

    tag: str
    cell: tuple[int, int]
    rows: int
    left: int
    top: int
    across: int
    down: int


def patches(provider: Provider, run: str) -> Patches:
    """The layers of a run that have patches."""
    listed = provider.tags_of(PLUGIN_NAME, run)
    found = sorted(tag for tag in listed if tag.startswith(tags.PATCHES))
    if not found:
        return Patches(run, [])
    kept = provider.points(PLUGIN_NAME, run, found)
    series = []
    for tag in found:
        points = _newest(kept.get(tag, ()))
        if points:
            key = tags.RECORD + tag.removeprefix(tags.PATCHES)
            shown = timeline(points)
            series.append(PatchesSeries(key, shown.steps, shown.wall_times))
    return Patches(run, series)


def layer_patches(provider: Provider, run: str, key: str, step: int, page: int = 0) -> LayerPatches:
    """The patches of a layer.

    Args:
        provider: of the run.
        run: name of the run.
        key: of the layer's own records.
        step: of the record.
        page: which of its pictures.

    Raises:
        Missing: there are none that can be read.
    """
    tag = tags.PATCHES + key.removeprefix(tags.RECORD)
    points = provider.points(PLUGIN_NAME, run, [tag]).get(tag, ())
    point = point_at(_newest(points), step)
    if point is None or not key.startswith(tags.RECORD):
        raise Missing(f"no patches of {key!r} at step {step} in run {run!r}")
    blobs = provider.blobs([(point, 0), (point, 1)])
    try:
        header, arrays = unpack([blob or b"" for blob in blobs])
        layout = _layout(header["picture"])
    except (FormatError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Missing(f"the patches of {key!r} cannot be read: {error}") from error
    return LayerPatches(
        header=header,
        step=step,
        page=page,
        arrays=arrays,
        png=_picture(provider, point, layout.tag, page),
        as_of=point.wall_time,
    )


def _newest(points: Iterable[Point]) -> list[Point]:
    """The last of the points of each step, ascending by step."""
    newest: dict[int, Point] = {}
    for point in sorted(points, key=lambda point: point.wall_time):
        if len(point.blobs) > 1:
            newest[point.step] = point
    return [newest[step] for step in sorted(newest)]


def _layout(picture: Any) -> _Layout:
    layout: _Layout = typed(_Layout, picture)
    positive = [*layout.cell, layout.rows, layout.down]
    numbers = [*positive, layout.left, layout.top, layout.across]
    if min(positive) < 1 or max(numbers) > _MAX_NUMBER:
        raise ValueError(f"invalid layout {numbers}")
    return layout


def _picture(provider: Provider, record: Point, tag: str, page: int) -> bytes:
    """A picture that was written together with a record; empty if it is not kept."""
    points = provider.points(IMAGES, record.run, [tag]).get(tag, ())
    for point in points:
        is_at_step = point.step == record.step
        is_together = is_at_step and point.wall_time == record.wall_time
        if is_together and 0 <= page < len(point.blobs) - FIRST_PICTURE:
            (png,) = provider.blobs([(point, FIRST_PICTURE + page)], keep=False)
            return png or b""
    return b""
