"""Measure which part of an image each position of a layer's output can depend on.

The model runs on copies of an image in which some rows, or some columns, are NaN. A position whose
output is not NaN does not depend on them. This uses the operations that the model really runs, so
it needs no knowledge of its layers. If one of them may lose NaN (see ``NanFlow``), the layers that
run after it count as dependent on the whole image.

Bands of rows are first as high as a 64th of the image, one at a time. Then every 32nd of thinner
bands is NaN at the same time: a position whose rows are known to lie within 31 bands depends on at
most one of them. The result is exact for images of up to 64 px, and for fields of up to 25 px.
Otherwise it may be larger than the field, by less than a 64th of the image on each side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.capture.twin import Twin
from fmapboard.measure.layout import as_maps, axes_of
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.records import LayerCall
from fmapboard.top_patches.nan_flow import NanFlow

_FIRST_BANDS = 64
"""Bands along an axis that are NaN one at a time."""

_BANDS = 32
"""Every how many of the thinner bands is NaN at the same time."""

_THINNER = 4
"""Ratio of the thickness of bands to that of the next ones."""

# Why the whole image is given.
CONTROL_FLOW = "control flow that depends on the image"
OTHER_GRID = "the number of positions, which depends on the image"
_FAILS = "the forward pass, which fails on NaN"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Grid = tuple[int, ...]
"""Axes of the positions: those of a layer's output without samples and channels."""


class Fields(NamedTuple):
    """The part of an image that each position of a layer can depend on.

    Attributes:
        grid: Axes of the positions.
        boxes: int64 [P, 4], top, left, bottom and right of each position in px, the latter two
            exclusive. It contains the receptive field of every channel at that position. That of
            a position that depends on no pixel, such as a class token, is the whole image.
        lost_at: Name of an operation because of which the whole image is given; None otherwise.
        constant: bool [P], the positions that depend on no pixel; None for none.
    """

    grid: Grid
    boxes: Ints
    lost_at: str | None = None
    constant: Bools | None = None

    @classmethod
    def whole(cls, grid: Grid, size: tuple[int, ...], lost_at: str) -> Fields:
        """The whole image, of height and width ``size``, for every position."""
        positions = math.prod(grid)
        boxes = np.tile([0, 0, *size], (positions, 1))  # [P, 4]
        return cls(grid, boxes, lost_at)

    @property
    def largest(self) -> tuple[int, int]:
        """Height and width in px of the largest box in each direction, without constant ones."""
        boxes = self.boxes
        if self.constant is not None and not self.constant.all():
            boxes = boxes[~self.constant]
        starts = boxes[:, :2]
        ends = boxes[:, 2:]
        sides = ends - starts  # [P, 2]
        height, width = sides.max(0)
        return int(height), int(width)


class MeasuredFields(NamedTuple):
    """The fields of all layers, for images of one size.

    Attributes:
        of_layer: By label of the layer call, in call order.
        separable: False if the images of a batch depend, or may depend, on each other.
        unknown: Why the fields of layers that are not listed count as the whole image.
    """

    of_layer: dict[str, Fields]
    separable: bool
    unknown: str = CONTROL_FLOW

    def of(self, label: str, grid: Grid, size: tuple[int, int]) -> Fields:
        """The fields of a layer call.

        They are the whole image if the layer did not run on the measured image, or returned another
        grid, as with tokens that are pruned by their values.

        Args:
            label: Of the call.
            grid: Axes of the positions that it returned.
            size: Height and width of the image in px.
        """
        fields = self.of_layer.get(label)
        if fields is None:
            fields = Fields.whole(grid, size, self.unknown)
            self.of_layer[label] = fields
        if fields.grid != grid:
            return Fields.whole(grid, size, OTHER_GRID)
        return fields


def measure_fields(registry: HookRegistry, image: Tensor, batch_size: int) -> MeasuredFields:
    """Measure the fields of all layers of a registry.

    Args:
        registry: Selects the layers; its model runs in eval mode and is left unchanged.
        image: [1, C, H, W], as the model takes it.
        batch_size: Maximum number of images per pass.

    Raises:
        Exception: What the model raises on the image itself.
    """
    if image.is_floating_point():
        image = torch.nan_to_num(image, 0, 0, 0)  # its own NaN would reach every probe
    alone = _seen(registry, image.clone())
    lost, separable = _lost(registry, image, alone)
    grids = {}
    for label, grid in alone.grids.items():
        if label not in lost:
            grids[label] = grid
    images_per_pass = batch_size if separable else 1
    rows: dict[str, Ints] = {}
    columns: dict[str, Ints] = {}
    try:
        rows = _extents(registry, image, -2, images_per_pass, grids)
        columns = _extents(registry, image, -1, images_per_pass, grids)
    except Exception:
        lost = dict.fromkeys(alone.grids, _FAILS)
    size_px = tuple(image.shape[-2:])
    found = {}
    for label, grid in alone.grids.items():
        lost_at = lost.get(label)
        if lost_at is None:
            fields = _fields(grid, size_px, rows[label], columns[label])
        else:
            fields = Fields.whole(grid, size_px, lost_at)
        found[label] = fields
    return MeasuredFields(found, separable)


def _fields(grid: Grid, size: tuple[int, ...], rows: Ints, columns: Ints) -> Fields:
    """The fields of a layer, from the rows and columns [P, 2] that each position depends on."""
    top, bottom = rows.T
    left, right = columns.T
    boxes = np.stack([top, left, bottom, right], 1)  # [P, 4]
    starts = boxes[:, :2]
    ends = boxes[:, 2:]
    constant = np.any(starts >= ends, axis=1)
    boxes[constant] = [0, 0, *size]
    return Fields(grid, boxes, None, constant)


def _lost(registry: HookRegistry, image: Tensor, alone: Seen) -> tuple[dict[str, str], bool]:
    """The layers that run after NaN may have been lost, and whether images are independent.

    A pass on two images, one of them NaN throughout; if that is impossible, only on that one.
    """
    if not image.is_floating_point():
        return dict.fromkeys(alone.grids, f"the input, which is {image.dtype}"), True
    all_nan = torch.full_like(image, torch.nan)
    pair = torch.cat([all_nan, image])
    seen = _watched(registry, pair)
    separable = seen is not None and _is_unaffected(seen, alone)
    if not separable:
        seen = _watched(registry, all_nan)
    if seen is None:
        return dict.fromkeys(alone.grids, _FAILS), separable
    lost = dict(seen.lost)
    for label, grid in alone.grids.items():
        if seen.grids.get(label) != grid:
            lost[label] = CONTROL_FLOW
    return lost, separable


def _is_unaffected(seen: Seen, alone: Seen) -> bool:
    """True if the second image of a pair gave what it gave alone."""
    if seen.lost:  # an image may have an influence without NaN
        return False
    if seen.grids != alone.grids:
        return False
    for label, alone_hits in alone.hits.items():
        _, second = seen.hits[label]
        if not np.array_equal(second, alone_hits[0]):
            return False
    return True


def maps_of(value: Any, module: nn.Module, images: int) -> tuple[Tensor, Grid] | None:
    """The first tensor that a layer returned; None if it cannot be read.

    A tensor of one sample for several images is the same for all of them, as a relative position
    bias that is computed once per pass. If its first axis is otherwise not that of the images, as
    in windowed attention, the tensor must be of one image; the axis then is one of positions.

    Returns:
        The values [N, C, P], P positions per image, which may alias the layer's live tensor; and
        the axes of the positions, empty for a layer that returns one number per channel.

    Raises:
        ValueError: It is of several images.
    """
    tensor = first_tensor(value)
    if tensor is None or not is_observable(tensor):
        return None
    # Three axes are read as tokens: images have four.
    axes = axes_of(module, tensor.shape)
    maps = as_maps(tensor, axes).maps
    samples = len(maps)
    if samples == 1:
        maps = maps.expand(images, *maps.shape[1:])
    elif samples != images:
        if images != 1:
            raise ValueError(f"{samples} samples in the output for {images} images")
        maps = maps.movedim(0, 1)
        maps = maps.unsqueeze(0)  # [1, C, N, *spatial]
    _, channels, *grid = maps.shape
    positions = math.prod(grid)
    values = maps.reshape(images, channels, positions)
    return values, tuple(grid)


class Seen(CaptureListener):
    """What one pass on images showed.

    Args:
        images: Number of images.
        flow: Watches the pass for operations that lose NaN; None if nothing does.

    Attributes:
        grids: Label -> axes of the positions.
        hits: Label -> bool [N, P], True where a channel is NaN.
        lost: Label -> the operation that lost NaN before the layer returned.
    """

    def __init__(self, images: int, flow: NanFlow | None) -> None:
        self._images = images
        self._flow = flow
        self.grids: dict[str, Grid] = {}
        self.hits: dict[str, Bools] = {}
        self.lost: dict[str, str] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Note where an output is NaN."""
        maps = maps_of(value, module, self._images)
        if maps is None:
            return
        label = layer_call.label
        values, grid = maps
        self.grids[label] = grid
        with aside(values.device.type, values.nbytes):
            hits = torch.isnan(values).any(1).cpu()  # [N, P]
            self.hits[label] = hits.numpy()
        lost_at = None if self._flow is None else self._flow.lost_at
        if lost_at is not None:
            self.lost[label] = lost_at


def _seen(registry: HookRegistry, images: Tensor, flow: NanFlow | None = None) -> Seen:
    """What a pass on images [N, C, H, W] shows; with ``flow``, also what lost NaN."""
    seen = Seen(len(images), flow)
    twin = Twin(registry.model)
    # Other algorithms for convolutions compute with pixels outside the kernel, times 0.
    with (
        torch.backends.cudnn.flags(enabled=False),
        torch.backends.nnpack.flags(enabled=False),
        registry.listening(seen, twin=twin),
    ):
        run_side_pass(twin, images)
    return seen


def _watched(registry: HookRegistry, images: Tensor) -> Seen | None:
    """What a pass showed while it was watched for operations that lose NaN; None if it failed."""
    try:
        with NanFlow() as flow:
            return _seen(registry, images, flow)
    except Exception:  # of any type: the model was not made for NaN
        return None


class _Bands(NamedTuple):
    """Bands of rows, or columns, of which every ``period`` px one is NaN.

    Attributes:
        thickness: Height of a band in px.
        period: Distance in px between the tops of bands that are NaN at the same time.
        length: Height of the image in px.
    """

    thickness: int
    period: int
    length: int

    def separate(self, spans: Ints) -> Bools:
        """The positions [P] whose rows lie in bands that are never NaN at the same time."""
        sides = spans[:, 1] - spans[:, 0]
        is_thicker = sides > self.thickness
        if self.period >= self.length:
            return is_thicker
        return is_thicker & (sides <= self.period - self.thickness)


class _Extent:
    """The first and the last row, or column, that each position of a layer depends on.

    Args:
        grid: Axes of the positions.
        length: Height of the image in px.

    Attributes:
        spans: int64 [P, 2], the first row and the one after the last, as far as is known.
    """

    def __init__(self, grid: Grid, length: int) -> None:
        positions = math.prod(grid)
        self.spans: Ints = np.tile([0, length], (positions, 1))

    def begin(self, bands: _Bands) -> bool:
        """Prepare for bands; False if they can narrow no span."""
        self._bands = bands
        self._open = bands.separate(self.spans)
        positions = len(self.spans)
        self._first = np.full(positions, bands.length)
        self._last = np.zeros(positions, np.int64)
        return bool(self._open.any())

    def add(self, start: int, hits: Bools) -> None:
        """Note which positions [P] the bands at ``start`` px, and every period on, reach."""
        thickness, period, _ = self._bands
        reached = self._open & hits
        low, high = self.spans[reached].T
        # The only one of the bands start, start + period, ... within the span.
        periods = -((start + thickness - 1 - low) // period)
        band = start + period * periods
        first = np.maximum(band, low)
        last = np.minimum(band + thickness, high)
        first_so_far = self._first[reached]
        last_so_far = self._last[reached]
        self._first[reached] = np.minimum(first_so_far, first)
        self._last[reached] = np.maximum(last_so_far, last)

    def end(self) -> None:
        """Narrow the spans to what the bands that reached a position have in common with them."""
        found = np.stack([self._first, self._last], 1)  # [P, 2]
        self.spans[self._open] = found[self._open]


def _extents(
    registry: HookRegistry,
    image: Tensor,
    axis: int,
    batch_size: int,
    grids: Mapping[str, Grid],
) -> dict[str, Ints]:
    """The rows (axis -2), or columns (-1), that the positions of layers depend on.

    Returns:
        Label -> int64 [P, 2], the first row and the one after the last.
    """
    length = image.shape[axis]
    extents = {label: _Extent(grid, length) for label, grid in grids.items()}
    thickness = ceil_div(length, _FIRST_BANDS)
    bands = _Bands(thickness, thickness * _FIRST_BANDS, length)
    while extents:
        is_open = [extent.begin(bands) for extent in extents.values()]
        if any(is_open):
            _narrow(extents, bands, registry, image, axis=axis, batch_size=batch_size)
        if bands.thickness == 1:
            break
        thickness = ceil_div(bands.thickness, _THINNER)
        bands = _Bands(thickness, thickness * _BANDS, length)
    return {label: extent.spans for label, extent in extents.items()}


def _narrow(
    extents: Mapping[str, _Extent],
    bands: _Bands,
    registry: HookRegistry,
    image: Tensor,
    axis: int,
    batch_size: int,
) -> None:
    """Run the model on copies of an image, in each of which other bands are NaN."""
    end = min(bands.period, bands.length)
    offsets = range(0, end, bands.thickness)
    for first in range(0, len(offsets), batch_size):
        starts = offsets[first : first + batch_size]
        probes = [_with_nan(image, axis, bands, start) for start in starts]
        batch = torch.cat(probes)
        seen = _seen(registry, batch)
        for label, extent in extents.items():
            for start, hits in zip(starts, seen.hits[label], strict=True):
                extent.add(start, hits)
    for extent in extents.values():
        extent.end()


def _with_nan(image: Tensor, axis: int, bands: _Bands, start: int) -> Tensor:
    """A copy of an image in which the bands at ``start`` px, and every period on, are NaN."""
    image = image.clone()
    rows = torch.arange(bands.length, device=image.device)
    is_nan = (rows - start) % bands.period < bands.thickness
    image.movedim(axis, 0)[is_nan] = torch.nan
    return image
