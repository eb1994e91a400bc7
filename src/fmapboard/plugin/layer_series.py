"""The layers of a run: each layer's kept records, with its first step's merged in."""

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
        own: of each kept step, ascending.
        firsts: of first steps (one for each time that the run was started), grids included.
    """

    layer: LayerTag
    own: tuple[Point, ...]
    firsts: tuple[Point, ...]

    @property
    def points(self) -> list[Point]:
        """A record for each step that can be shown, ascending by step."""
        kept = {point.step for point in self.own}
        return sorted(
            [*self.own, *(point for point in self.firsts if point.step not in kept)],
            key=lambda point: point.step,
        )

    @property
    def is_first_from_first(self) -> bool:
        """Was the first step dropped from the series, and saved by the first step's record?"""
        points = self.points
        return bool(points) and points[0] not in self.own


def series_of(reader: Reader, run: str, key: str | None = None) -> list[Series]:
    """The layers of a run, or the one that a key names; empty where there is none."""
    if key is None:
        found = reader.points(PLUGIN_NAME, run)
    else:
        layer = layer_of(key)
        if layer is None or layer.key != key:
            return []
        found = reader.points(PLUGIN_NAME, run, [layer.key, layer.first_key])
    layers = {layer for layer in map(layer_of, found) if layer is not None}
    every = [
        Series(layer, tuple(found.get(layer.key, ())), tuple(found.get(layer.first_key, ())))
        for layer in layers
    ]
    return [series for series in every if series.own or series.firsts]


def the_series(reader: Reader, query: Query) -> Series:
    """The layer that a query names.

    Raises:
        Refused: it names none.
    """
    run, key = query.text("run"), query.text("key")
    found = series_of(reader, run, key)
    if not found:
        raise missing(f"no layer {key!r} in run {run!r}")
    return found[0]


def nearest(points: Sequence[Point], step: int) -> int:
    """The place of the last point at or before a step, else of the first."""
    return max(0, bisect_right([point.step for point in points], step) - 1)
