"""The contact sheet of the overview: layers × steps, one channel of each layer, small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.health.table import HealthTable
from fmapboard.plugin.answers import Binary, Invalid, Missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.picture_values import decoded, is_png, tile_of
from fmapboard.plugin.routes.maps import FIRST_PICTURE, picture_places
from fmapboard.plugin.stored_record import LayerAt, PictureFacts, Record, records_at
from fmapboard.plugin.tag_names import input_tag
from fmapboard.runs.provider import IMAGES, Point, Provider

Bytes8 = npt.NDArray[np.uint8]
MAX_CELLS = 4096
_SIDES = 8, 256
"""Smallest and largest side of a cell, px."""
_NOT_DRAWN = 250
"""Palette index of a cell without a picture; those from here on are marks (`render.palettes`)."""
_THREADS = 4
Place = tuple[int, int]
"""Row and column."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A layer's row of the contact sheet.

    Attributes:
        key: of the layer.
        channel: the channel that is shown: of those drawn, the one with the largest mean over the
            steps of its standard deviation divided by the layer's; None if nothing is drawn.
        palette: name of the palette in which the maps are stored.
        why: why a step's record cannot be read; None if all can.
    """

    key: str
    channel: int | None
    palette: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet(Binary):
    """``data/sheet``.

    Attributes:
        rows: one per requested layer that exists.
        arrays: float [rows, steps]: ``height`` and ``width`` of each map, px, 0 where the channel
            is not drawn; ``lo`` and ``hi``, its range, NaN there. ``pixels``, uint8, has one map
            after the other: palette indices between its own ends. A map that is smaller than a
            cell is sent as it is stored.
    """

    rows: tuple[SheetRow, ...]
    arrays: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class SheetInput(Binary):
    """``data/sheet_input``: the network's input at each step.

    Attributes:
        same: True if it was the same image at all steps that are kept; None if there are not two.
        width: px of each cell, from its left, that the image takes.
        height: px of each cell, from its top, that the image takes.
        kept: for each step, whether its image is kept.
        arrays: ``pixels`` uint8 [steps, cell, cell, 3], RGB.
    """

    same: bool | None
    width: int
    height: int
    kept: tuple[bool, ...]
    arrays: dict[str, npt.NDArray[Any]]


def sheet(
    provider: Provider, run: str, key: Sequence[str], step: Sequence[str], cell: int
) -> Sheet:
    """A page of the contact sheet.

    Args:
        provider: of the run.
        run: name of the run.
        key: of each layer.
        step: number of each step.
        cell: side of a cell, px.

    Raises:
        Invalid: an argument is, or there are more than `MAX_CELLS` cells.
        Missing: no layer exists.
    """
    steps = _steps(step, cell, len(key))
    found = {series.layer.key: series for series in series_of(provider, run, key)}
    layers = [found[one] for one in key if one in found]
    if not layers:
        raise Missing(f"no layer {key[0]!r} in run {run!r}")
    table = run_overview(provider, run).health()
    at = {
        (row, column): point
        for row, series in enumerate(layers)
        for column, point in _at_steps(series.points, steps).items()
    }
    stamps = str([table.wall_times, [(place, point.wall_time) for place, point in at.items()]])
    build = partial(_built, provider, table, layers, at, cell, len(steps))
    return provider.built(("sheet", run, str(cell), *key, *step, stamps), build, _bytes)


def _bytes(of: Sheet | SheetInput) -> int:
    """Of memory; 0, so that it is not kept, while TensorBoard has not read all pictures."""
    shown = of.kept if isinstance(of, SheetInput) else of.arrays["height"].ravel()
    return of.arrays["pixels"].nbytes if all(shown) else 0


def _built(
    provider: Provider, table: HealthTable, layers: Sequence[Series], at: Mapping[Place, Point],
    cell: int, steps: int, last: Sheet | None,
) -> Sheet:  # fmt: skip
    """The last version of a page, which has the same points at the same places, or a new one."""
    if last is not None:
        return last
    records = dict(zip(at, records_at(provider, [*at.values()]), strict=True))
    errors = {row: str(of) for (row, _), of in records.items() if isinstance(of, FormatError)}
    logged = {
        place: LayerAt(layers[place[0]], at[place], of)
        for place, of in records.items()
        if isinstance(of, Record)
    }
    channels = _channels(table, logged)
    drawn = [
        _Cell(row, column, at, maps, channels[row])
        for (row, column), at in logged.items()
        if (maps := at.record.header.maps) is not None and row in channels
    ]

    def small(one: _Cell, png: bytes | None) -> Bytes8 | None:
        tile = one.tile(png)
        return None if tile is None else _fitted(tile, cell)

    with ThreadPoolExecutor(_THREADS) as pool:  # decoding does not hold the interpreter's lock
        found_maps = list(pool.map(small, drawn, _pngs(provider, drawn)))
    shape = (len(layers), steps)
    arrays = {side: np.zeros(shape) for side in ("height", "width")}
    arrays |= {end: np.full(shape, np.nan) for end in ("lo", "hi")}
    pixels = [np.empty(0, np.uint8)]
    for one, pixels_of in zip(drawn, found_maps, strict=True):
        if pixels_of is not None:
            at_cell = one.row, one.column
            arrays["height"][at_cell], arrays["width"][at_cell] = pixels_of.shape
            arrays["lo"][at_cell], arrays["hi"][at_cell] = one.end("lo"), one.end("hi")
            pixels.append(pixels_of.ravel())
    palettes = {one.row: str(one.raw.get("palette", "")) for one in drawn}
    rows = []
    for row, series in enumerate(layers):
        shown = channels.get(row) if arrays["height"][row].any() else None
        rows.append(SheetRow(series.layer.key, shown, palettes.get(row, ""), errors.get(row)))
    return Sheet(tuple(rows), {"pixels": np.concatenate(pixels), **arrays})


def _steps(step: Sequence[str], cell: int, rows: int) -> list[int]:
    """The numbers of the steps.

    Raises:
        Invalid: one is none, or the page is too large.
    """
    if not _SIDES[0] <= cell <= _SIDES[1]:
        raise Invalid(f"the query's cell must be {_SIDES[0]} to {_SIDES[1]} px, not {cell}")
    if rows * len(step) > MAX_CELLS:
        raise Invalid(f"at most {MAX_CELLS} cells are sent at once, not {rows} × {len(step)}")
    try:
        return [int(number) for number in step]
    except ValueError as error:
        raise Invalid(f"the query's steps must be integers: {error}") from None


def _at_steps(points: Sequence[Point], steps: Sequence[int]) -> dict[int, Point]:
    """Place of each requested step -> its point, of those that there are."""
    known = {point.step: point for point in points}
    return {place: known[step] for place, step in enumerate(steps) if step in known}


def _channels(table: HealthTable, logged: Mapping[Place, LayerAt]) -> dict[int, int]:
    """Row -> the channel that is shown; without the layers of which nothing is drawn."""
    layers = {row.key: place for place, row in enumerate(table.rows)}
    steps = {step: place for place, step in enumerate(table.steps)}
    spreads: dict[int, list[Floats]] = {}
    for (row, _), at in logged.items():
        maps, arrays = at.record.header.maps, at.record.arrays
        if maps is None or not maps.drawn:
            continue
        own = np.asarray(arrays.get(f"{maps.role}.std", np.zeros(maps.drawn)), np.float64)
        layer, step = layers.get(at.series.layer.key), steps.get(at.point.step)
        if layer is not None and step is not None:
            of_layer = float(table.columns["std"][step, layer])
            own = own / of_layer if of_layer > 0 else own
        spreads.setdefault(row, []).append(own)
    return {row: _largest(values) for row, values in spreads.items()}


def _largest(spreads: Sequence[Floats]) -> int:
    """The channel with the largest mean; a step at which it was not drawn does not count."""
    total, count = np.zeros((2, max(map(len, spreads))))
    for values in spreads:
        is_known = np.isfinite(values)
        total[: len(values)] += np.where(is_known, values, 0)
        count[: len(values)] += is_known
    return int(np.argmax(total / np.maximum(count, 1)))


class _Cell(NamedTuple):
    """A layer at a step, and the channel that is shown."""

    row: int
    column: int
    at: LayerAt
    maps: PictureFacts
    channel: int

    @property
    def raw(self) -> Mapping[str, Any]:
        """The stored entry of the picture."""
        found: Mapping[str, Any] = self.at.record.raw["pictures"][self.place]
        return found

    @property
    def place(self) -> int:
        """That of the picture in the record."""
        return self.at.record.header.pictures.index(self.maps)

    def end(self, which: str) -> float:
        """The lower or upper end of the channel's range in the first sample; NaN if unknown."""
        ends = self.at.record.arrays.get(f"{self.maps.role}.{which}")
        is_there = ends is not None and ends.ndim == 2 and self.channel < ends.shape[1]
        return float(ends[0, self.channel]) if is_there and ends is not None else float("nan")

    def tile(self, png: bytes | None) -> Bytes8 | None:
        """The channel as palette indices [height, width]; None if it is not drawn here."""
        found = None if png is None else tile_of(png, self.raw, self.channel)
        if found is None:
            return None
        mode, tile = found
        levels: Bytes8 = tile if mode == "P" else (tile.astype("u2") * _NOT_DRAWN >> 8).astype("u1")
        return levels


def _pngs(provider: Provider, drawn: Sequence[_Cell]) -> list[bytes | None]:
    """The picture of the first sample of each cell."""
    found = zip(picture_places(provider, [one.at for one in drawn]), drawn, strict=True)
    asked = [samples[0] if (samples := of[one.place]) else None for of, one in found]
    blobs = iter(provider.blobs([place for place in asked if place is not None], keep=False))
    return [None if place is None else next(blobs) for place in asked]


def _fitted(tile: Bytes8, cell: int) -> Bytes8:
    """Palette indices [height, width], shrunk to fit a cell; marks are kept."""
    height, width = tile.shape
    factor = cell / max(height, width)
    if factor >= 1:
        return tile
    sides = max(1, round(width * factor)), max(1, round(height * factor))
    is_level = tile < _NOT_DRAWN
    small = _shrunk(np.where(is_level, tile, 0).astype(np.uint8), sides)
    if is_level.all():
        return small
    for mark in sorted(np.unique(tile[~is_level]), reverse=True):  # NaN last, over the others
        small[_shrunk(np.where(tile == mark, 255, 0).astype(np.uint8), sides) > 0] = mark
    return small


def _shrunk(pixels: Bytes8, sides: tuple[int, int]) -> Bytes8:
    """Pixels averaged to (width, height)."""
    return np.array(Image.fromarray(pixels).resize(sides, Image.Resampling.BOX))


def sheet_input(
    provider: Provider, run: str, step: Sequence[str], cell: int, name: str = ""
) -> SheetInput:
    """The network's input at each step.

    Args:
        provider: of the run.
        run: name of the run.
        step: number of each step.
        cell: side of a cell, px.
        name: of the model.

    Raises:
        Invalid: an argument is.
        Missing: no input is kept.
    """
    steps = _steps(step, cell, 1)
    tag = input_tag(name, 0)
    at = _at_steps(provider.points(IMAGES, run, [tag]).get(tag, ()), steps)
    stamps = str([point.wall_time for point in at.values()])

    def build(last: SheetInput | None) -> SheetInput:
        if last is not None:
            return last
        blobs = provider.blobs([(point, FIRST_PICTURE) for point in at.values()], keep=False)
        distinct = {png: None for png in blobs if png is not None and is_png(png)}
        with ThreadPoolExecutor(_THREADS) as pool:
            images = dict(zip(distinct, pool.map(decoded, distinct), strict=True))
        found = {column: images.get(png or b"") for column, png in zip(at, blobs, strict=True)}
        pictures = {i: of[1] for i, of in found.items() if of and of[0] in ("L", "RGB")}
        if not pictures:
            raise Missing(f"no {tag!r} in run {run!r} at these steps")
        return _input(pictures, len(steps), cell)

    return provider.built(("sheet_input", run, tag, str(cell), *step, stamps), build, _bytes)


def _input(pictures: Mapping[int, Bytes8], steps: int, cell: int) -> SheetInput:
    """The images of some columns, shrunk or enlarged to fit a cell."""
    first, *others = {id(picture): picture for picture in pictures.values()}.values()
    factor = cell / max(first.shape[:2])
    height, width = (max(1, round(side * factor)) for side in first.shape[:2])
    pixels = np.zeros((steps, cell, cell, 3), np.uint8)
    for column, picture in pictures.items():
        how = Image.Resampling.BOX if factor < 1 else Image.Resampling.NEAREST
        small = Image.fromarray(picture).convert("RGB").resize((width, height), how)
        pixels[column, :height, :width] = np.asarray(small)
    is_same = all(np.array_equal(first, other) for other in others)
    same = is_same if len(pictures) > 1 else None
    kept = tuple(column in pictures for column in range(steps))
    return SheetInput(same, width, height, kept, {"pixels": pixels})
