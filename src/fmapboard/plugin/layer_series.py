"""The layers of a run, each with the records that TensorBoard keeps and those of first steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from fmapboard.plugin.data_source import Point, Reader
from fmapboard.plugin.http import Query, missing
from fmapboard.plugin.tag_names import LayerTag, layer_of
from fmapboard.tab_format import PLUGIN_NAME


@dataclass(frozen=True, slots=True)
class Series:
    """The records of one layer.

    Attributes:
        own: records of the steps that TensorBoard keeps, ascending by step.
        firsts: records of first steps, one per start of the run; these include the pictures.
    """

    layer: LayerTag
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


def series_of(reader: Reader, run: str, *keys: str) -> list[Series]:
    """The layers of a run, in any order; with ``keys`` only those layers, if they exist."""
    if keys:
        asked = [layer for key in keys if (layer := layer_of(key)) and layer.key == key]
        tags = [tag for layer in asked for tag in (layer.key, layer.first_key)]
        found = reader.points(PLUGIN_NAME, run, tags) if tags else {}
    else:
        found = reader.points(PLUGIN_NAME, run)
    layers = {layer for layer in map(layer_of, found) if layer is not None}
    every = [
        Series(layer, tuple(found.get(layer.key, ())), tuple(found.get(layer.first_key, ())))
        for layer in layers
    ]
    return [series for series in every if series.own or series.firsts]


def requested_series(reader: Reader, query: Query) -> Series:
    """The layer given by ``run`` and ``key`` of a query.

    Raises:
        Refused: there is no such layer.
    """
    run, key = query.text("run"), query.text("key")
    found = series_of(reader, run, key)
    if not found:
        raise missing(f"no layer {key!r} in run {run!r}")
    return found[0]


def nearest(points: Sequence[Point], step: int) -> int:
    """Index of the last point at or before a step; 0 if there is none."""
    return max(0, bisect_right([point.step for point in points], step) - 1)
