"""The layers of a run, each with the records that TensorBoard keeps and those of first steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
        return sorted(
            [*self.own, *(point for point in self.firsts if point.step not in kept)],
            key=lambda point: point.step,
        )

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
    asked = {key: layer_of(key) for key in keys}
    layers = [layer for key, layer in asked.items() if layer is not None and layer.key == key]
    both = [tag for layer in layers for tag in (layer.key, layer.first_key)]
    found = provider.points(PLUGIN_NAME, run, both) if both else {}
    every = [
        Series(tuple(found.get(layer.key, ())), tuple(found.get(layer.first_key, ())), layer)
        for layer in layers
    ]
    return [series for series in every if series.own or series.firsts]


def requested_series(provider: Provider, run: str, key: str) -> Series:
    """A layer.

    Raises:
        Missing: there is no such layer.
    """
    found = series_of(provider, run, [key])
    if not found:
        raise Missing(f"no layer {key!r} in run {run!r}")
    return found[0]


def timeline(points: Sequence[Point]) -> tuple[list[int], list[float]]:
    """The steps of points, and their wall times, s."""
    return [point.step for point in points], [point.wall_time for point in points]


def nearest(points: Sequence[Point], step: int) -> int:
    """Index of the last point at or before a step; 0 if there is none."""
    return max(0, bisect_right([point.step for point in points], step) - 1)
