"""The layers of a run, each with the records that TensorBoard keeps and those of first steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.tag_names import LayerTag, layer_of
from fmapboard.runs.provider import Point, Provider


@dataclass(frozen=True, slots=True)
class Kept:
    """The records of one series, and those of first steps.

    Attributes:
        own: records of the steps that TensorBoard keeps, ascending by step.
        firsts: records of first steps, one per start of the run; a layer's include the pictures.
    """

    own: tuple[Point, ...]
    firsts: tuple[Point, ...]

    @property
    def points(self) -> list[Point]:
        """One record per step that can be shown, ascending by step."""
        kept = {point.step for point in self.own}
        restored = [point for point in self.firsts if point.step not in kept]
        points = [*self.own, *restored]
        return sorted(points, key=lambda point: point.step)

    @property
    def first_step_is_restored(self) -> bool:
        """True if TensorBoard dropped the first step, and the record in ``firsts`` replaces it."""
        points = self.points
        return bool(points) and points[0] not in self.own


@dataclass(frozen=True, slots=True)
class Series(Kept):
    """The records of one layer."""

    layer: LayerTag


def series_of(provider: Provider, run: str, keys: Iterable[str]) -> list[Series]:
    """These layers of a run, in any order, without those that do not exist."""
    layers = []
    tags = []
    for key in dict.fromkeys(keys):
        layer = layer_of(key)
        if layer is not None and layer.key == key:
            layers.append(layer)
            tags += [layer.key, layer.first_key]
    if not layers:
        return []
    found = provider.points(PLUGIN_NAME, run, tags)
    listed = []
    for layer in layers:
        own = tuple(found.get(layer.key, ()))
        firsts = tuple(found.get(layer.first_key, ()))
        if own or firsts:
            listed.append(Series(own, firsts, layer))
    return listed


def requested_series(provider: Provider, run: str, key: str) -> Series:
    """A layer.

    Raises:
        Missing: there is no such layer.
    """
    found = series_of(provider, run, [key])
    if not found:
        raise Missing(f"no layer {key!r} in run {run!r}")
    return found[0]


class Timeline(NamedTuple):
    """Steps, and their wall times, s."""

    steps: list[int]
    wall_times: list[float]


def timeline(points: Sequence[Point]) -> Timeline:
    """The steps of points, and their wall times."""
    steps = [point.step for point in points]
    wall_times = [point.wall_time for point in points]
    return Timeline(steps, wall_times)


def nearest(points: Sequence[Point], step: int) -> int:
    """Index of the last point at or before a step; 0 if there is none."""
    steps = [point.step for point in points]
    return max(0, bisect_right(steps, step) - 1)


def point_at(points: Iterable[Point], step: int) -> Point | None:
    """The first of the points at a step, or None."""
    for point in points:
        if point.step == step:
            return point
    return None
