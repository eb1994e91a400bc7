"""The contact sheet of the overview: layers × steps, one channel of each layer, small."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.plugin.answers import Binary, Invalid, Missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.picture_values import SHARE_OF_INDEX, decoded, tile_of
from fmapboard.plugin.routes.maps import FIRST_PICTURE, picture_places
from fmapboard.plugin.shown_channels import shown_channels
from fmapboard.plugin.stored_record import LayerAt, PictureFacts, records_at
from fmapboard.plugin.tag_names import input_tag
from fmapboard.runs.provider import IMAGES, Point, Provider

Bytes8 = npt.NDArray[np.uint8]
MAX_CELLS = 4096
_SMALLEST = 8
"""Least side of a cell, px."""
_LARGEST = 256
"""Largest side of a cell, px."""
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
        channel: the channel that is shown, see `shown_channels`; None if it is drawn at none of the
            requested steps.
        palette: name of the palette in which the maps are stored.
        view: which part of the maps is shown, such as a depth slice; "" for all.
        why: why a step's record cannot be read; None if all can.
    """

    key: str
    channel: int | None
    palette: str
    view: str = ""
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet(Binary):
    """``data/sheet``.

    Attributes:
        rows: one per requested layer that exists.
        arrays: float [rows, steps]: ``height`` and ``width`` of each map, px, 0 where the channel
            is not drawn; ``lo`` and ``hi``, the ends of its scale, and ``least`` and ``most``, its
            range, NaN there. ``pixels``, uint8, has one map after the other: palette indices
            between its own ends. A map that is smaller than a cell is sent as it is stored; one row
            of pixels as the least and the largest of parts.
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
    found = {}
    for series in series_of(provider, run, key):
        found[series.layer.key] = series
    layers = [found[name] for name in key if name in found]
    if not layers:
        raise Missing(f"no layer {key[0]!r} in run {run!r}")
    table = run_overview(provider, run).health()
    points: dict[Place, Point] = {}
    for row, series in enumerate(layers):
        of_layer = _at_steps(series.points, steps)
        for column, point in of_layer.items():
            points[row, column] = point

    def build(last: Sheet | None) -> Sheet:
        if last is not None:  # it has the same points at the same places
            return last
        logged, errors = _records(provider, layers, points)
        channels = shown_channels(provider, run, layers)
        cells = _cells(channels, logged)
        tiles = _tiles(provider, cells, cell)
        shape = (len(layers), len(steps))
        arrays = _arrays(cells, tiles, shape)
        rows = _rows(layers, cells, errors, arrays["height"])
        return Sheet(rows, arrays)

    wall_times = [(place, point.wall_time) for place, point in points.items()]
    stamps = str([table.wall_times, wall_times])
    cache_key = ("sheet", run, str(cell), *key, *step, stamps)
    return provider.built(cache_key, build, _bytes)


def _bytes(page: Sheet | SheetInput) -> int:
    """Of memory; 0, so that it is not kept, while TensorBoard has not read all pictures."""
    is_drawn = page.kept if isinstance(page, SheetInput) else page.arrays["height"]
    return page.arrays["pixels"].nbytes if np.all(is_drawn) else 0


def _records(
    provider: Provider, layers: Sequence[Series], points: Mapping[Place, Point]
) -> tuple[dict[Place, LayerAt], dict[int, str]]:
    """The records of a page, and row -> why one of it cannot be read."""
    logged: dict[Place, LayerAt] = {}
    errors: dict[int, str] = {}
    records = records_at(provider, list(points.values()))
    for (place, point), record in zip(points.items(), records, strict=True):
        row, _ = place
        if isinstance(record, FormatError):
            errors[row] = str(record)
        else:
            logged[place] = LayerAt(layers[row], point, record)
    return logged, errors


def _rows(
    layers: Sequence[Series], cells: Sequence[_Cell], errors: Mapping[int, str], heights: Floats
) -> tuple[SheetRow, ...]:
    """The rows, given the heights of the maps, [rows, steps], as in `Sheet`."""
    last_cells = {cell.row: cell for cell in cells}
    rows = []
    for row, series in enumerate(layers):
        cell = last_cells.get(row)
        channel = None
        palette = ""
        view = ""
        if cell is not None:
            palette = str(cell.raw.get("palette", ""))
            view = _view(cell.raw)
            if heights[row].any():
                channel = cell.channel
        why = errors.get(row)
        rows.append(SheetRow(series.layer.key, channel, palette, view, why))
    return tuple(rows)


def _view(picture: Mapping[str, Any]) -> str:
    """Which part of the maps a stored picture shows."""
    view = str(picture.get("view") or "")
    depth = picture.get("depth")
    others = picture.get("slices")
    if not isinstance(depth, int) or not isinstance(others, list):
        return view
    last = max(depth, *others)
    slice_text = f"depth slice {depth} of 0…{last}"
    return f"{slice_text}; {view}" if view else slice_text


def _arrays(
    cells: Sequence[_Cell], tiles: Sequence[_Tile | None], shape: tuple[int, int]
) -> dict[str, npt.NDArray[Any]]:
    """See `Sheet`."""
    heights = np.zeros(shape)
    widths = np.zeros(shape)
    ends = np.full((4, *shape), np.nan)
    pixels = [np.empty(0, np.uint8)]
    for cell, tile in zip(cells, tiles, strict=True):
        if tile is None:
            continue
        place = (..., cell.row, cell.column)
        heights[place], widths[place] = tile.pixels.shape
        ends[place] = cell.ends(tile)
        pixels.append(tile.pixels.ravel())
    return {
        "pixels": np.concatenate(pixels),
        "height": heights,
        "width": widths,
        **dict(zip(("lo", "hi", "least", "most"), ends, strict=True)),
    }


def _steps(step: Sequence[str], cell: int, rows: int) -> list[int]:
    """The numbers of the steps.

    Raises:
        Invalid: one is none, or the page is too large.
    """
    if not _SMALLEST <= cell <= _LARGEST:
        raise Invalid(f"the query's cell must be {_SMALLEST} to {_LARGEST} px, not {cell}")
    columns = len(step)
    if rows * columns > MAX_CELLS:
        raise Invalid(f"at most {MAX_CELLS} cells are sent at once, not {rows} × {columns}")
    try:
        return [int(number) for number in step]
    except ValueError as error:
        raise Invalid(f"the query's steps must be integers: {error}") from None


def _at_steps(points: Sequence[Point], steps: Sequence[int]) -> dict[int, Point]:
    """Place of each requested step -> its point, of those that there are."""
    by_step = {point.step: point for point in points}
    found = {}
    for place, step in enumerate(steps):
        if step in by_step:
            found[place] = by_step[step]
    return found


def _cells(channels: Sequence[int | None], logged: Mapping[Place, LayerAt]) -> list[_Cell]:
    """The cells of the layers that have drawn channels, given the channel of each layer."""
    cells = []
    for (row, column), layer in logged.items():
        maps = layer.record.header.maps
        channel = channels[row]
        if maps is not None and channel is not None:
            cells.append(_Cell(row, column, layer, maps, channel))
    return cells


class _Tile(NamedTuple):
    """A map as palette indices, shrunk to fit a cell; and its extremes, from 0 to 1 of its scale.

    The extremes are those before it was shrunk; 0 and 1 if no value is finite.
    """

    pixels: Bytes8
    least: float
    most: float


class _Cell(NamedTuple):
    """A layer at a step, and the channel that is shown."""

    row: int
    column: int
    at: LayerAt
    maps: PictureFacts
    channel: int

    @property
    def raw(self) -> Any:
        """The stored entry of the picture."""
        pictures = self.at.record.raw["pictures"]
        return pictures[self.place]

    @property
    def place(self) -> int:
        """That of the picture in the record."""
        header = self.at.record.header
        return header.pictures.index(self.maps)

    def ends(self, tile: _Tile) -> tuple[float, float, float, float]:
        """The ends of the channel's scale, and the map's least and largest value."""
        low = self._end("lo")
        high = self._end("hi")
        if low != -high:
            return low, high, low, high
        return low, high, _within(high, tile.least), _within(high, tile.most)

    def _end(self, which: str) -> float:
        """The lower or upper end of the channel's range in the first sample; NaN if unknown."""
        ends = self.at.record.arrays.get(f"{self.maps.role}.{which}")
        if ends is None or ends.ndim != 2:
            return math.nan
        first_sample = ends[0]
        if self.channel >= len(first_sample):
            return math.nan
        return float(first_sample[self.channel])

    def tile(self, png: bytes | None, side: int) -> _Tile | None:
        """The map of the channel; None if it is not drawn here."""
        if png is None:
            return None
        found = tile_of(png, self.raw, self.channel)
        if found is None:
            return None
        mode, tile = found
        if mode == "P":
            shares = SHARE_OF_INDEX[tile[tile < _NOT_DRAWN]]
        else:
            shares = tile / np.float32(255)
            scaled = tile.astype(np.uint16) * _NOT_DRAWN
            tile = (scaled >> 8).astype(np.uint8)
        least, most = (shares.min(), shares.max()) if shares.size else (0.0, 1.0)
        return _Tile(_fitted(tile, side), float(least), float(most))


def _within(end: float, share: float) -> float:
    """A value of a scale from -``end`` to ``end``, as exact as its 255 steps let one know it."""
    value = (2 * share - 1) * end
    if share in (0.0, 1.0) or not 0 < end < math.inf:
        return value
    unit = 10.0 ** math.ceil(math.log10(2 * end / 255))
    return round(value / unit) * unit + 0.0  # no -0.0


def _tiles(provider: Provider, cells: Sequence[_Cell], side: int) -> list[_Tile | None]:
    """The channel of each cell in the first sample, at most ``side`` px high and wide."""
    asked: dict[int, tuple[Point, int]] = {}
    layers = [cell.at for cell in cells]
    for i, pictures in enumerate(picture_places(provider, layers)):
        shown = cells[i].place
        samples = pictures[shown]
        if samples:
            asked[i] = samples[0]
    blobs = provider.blobs(list(asked.values()), keep=False)
    pngs = dict(zip(asked, blobs, strict=True))
    decoding = []
    with ThreadPoolExecutor(_THREADS) as pool:  # decoding does not hold the interpreter's lock
        for i, cell in enumerate(cells):
            tile = pool.submit(cell.tile, pngs.get(i), side)
            decoding.append(tile)
    return [tile.result() for tile in decoding]


def _fitted(tile: Bytes8, cell: int) -> Bytes8:
    """Palette indices [height, width], shrunk to fit a cell; marks are kept.

    Of one row of pixels, which is drawn as a curve, up to two are kept per px of the cell.
    """
    height, width = tile.shape
    factor = cell / max(height, width)
    if height == 1 and width > 2 * cell:
        return _envelope(tile[0], cell)
    if factor >= 1 or height == 1:
        return tile
    small_width = max(1, round(width * factor))
    small_height = max(1, round(height * factor))
    sides = (small_width, small_height)
    is_mark = tile >= _NOT_DRAWN
    levels = tile.copy()
    levels[is_mark] = 0
    small = _shrunk(levels, sides)
    marks = np.unique(tile[is_mark])
    for mark in marks[::-1]:  # NaN last, over the others
        marked = np.zeros_like(tile)
        marked[tile == mark] = 255
        covered = _shrunk(marked, sides) > 0
        small[covered] = mark
    return small


def _envelope(row: Bytes8, parts: int) -> Bytes8:
    """The least and the largest index of each part of a row, [1, 2 * parts]; a mark instead."""
    starts = np.arange(parts) * len(row) // parts
    is_mark = row >= _NOT_DRAWN
    least = np.minimum.reduceat(row, starts)
    most = np.maximum.reduceat(np.where(is_mark, 0, row), starts)
    marks = np.minimum.reduceat(np.where(is_mark, row, 255), starts)
    pairs = np.stack([least, most], axis=1)
    has_mark = np.maximum.reduceat(row, starts) >= _NOT_DRAWN
    pairs[has_mark] = marks[has_mark, None]
    return pairs.reshape(1, -1)


def _shrunk(pixels: Bytes8, sides: tuple[int, int]) -> Bytes8:
    """Pixels averaged to (width, height)."""
    image = Image.fromarray(pixels)
    return np.array(image.resize(sides, Image.Resampling.BOX))


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
    series = provider.points(IMAGES, run, [tag])
    kept = series.get(tag, ())
    points = _at_steps(kept, steps)

    def build(last: SheetInput | None) -> SheetInput:
        if last is not None:
            return last
        pictures = _pictures(provider, points)
        if not pictures:
            raise Missing(f"no {tag!r} in run {run!r} at these steps")
        return _input(pictures, len(steps), cell)

    stamps = str([point.wall_time for point in points.values()])
    cache_key = ("sheet_input", run, tag, str(cell), *step, stamps)
    return provider.built(cache_key, build, _bytes)


def _pictures(provider: Provider, points: Mapping[int, Point]) -> dict[int, Bytes8]:
    """Column -> input image, of those that can be read; images with the same bytes are one."""
    asked = [(point, FIRST_PICTURE) for point in points.values()]
    pngs = provider.blobs(asked, keep=False)
    distinct = list({png for png in pngs if png is not None})
    with ThreadPoolExecutor(_THREADS) as pool:
        decoding = pool.map(decoded, distinct)
        images = dict(zip(distinct, decoding, strict=True))
    pictures = {}
    for column, png in zip(points, pngs, strict=True):
        if png is None:
            continue
        image = images[png]
        if image is None:
            continue
        mode, pixels = image
        if mode in ("L", "RGB"):
            pictures[column] = pixels
    return pictures


def _input(pictures: Mapping[int, Bytes8], steps: int, cell: int) -> SheetInput:
    """The images of some columns, shrunk or enlarged to fit a cell."""
    distinct = {id(picture): picture for picture in pictures.values()}
    first, *others = distinct.values()
    full_height, full_width = first.shape[:2]
    factor = cell / max(full_height, full_width)
    height = max(1, round(full_height * factor))
    width = max(1, round(full_width * factor))
    resampling = Image.Resampling.BOX if factor < 1 else Image.Resampling.NEAREST
    pixels = np.zeros((steps, cell, cell, 3), np.uint8)
    for column, picture in pictures.items():
        image = Image.fromarray(picture).convert("RGB")
        small = image.resize((width, height), resampling)
        pixels[column, :height, :width] = np.asarray(small)
    same = None
    if len(pictures) > 1:
        same = all(np.array_equal(first, other) for other in others)
    kept = tuple(column in pictures for column in range(steps))
    return SheetInput(
        same=same,
        width=width,
        height=height,
        kept=kept,
        arrays={"pixels": pixels},
    )
