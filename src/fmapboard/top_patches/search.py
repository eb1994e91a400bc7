"""``PatchSearch``: the crops that excite each channel most, from a stream of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from fmapboard.errors import CaptureError, ConfigurationError
from fmapboard.extraction.call_trace import explained, run_recorded
from fmapboard.measure.token_grids import guessed_grid
from fmapboard.model.layers import Layers
from fmapboard.records import Bytes8, Crop, LayerCall, LayerPatches
from fmapboard.render.quantize import shrink_pixels
from fmapboard.top_patches.fields import (
    Bools,
    Fields,
    Grid,
    Ints,
    MeasuredFields,
    maps_of,
    measure_fields,
)

Doubles = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]
"""Top, left, bottom and right of a part of an image in px, the latter two exclusive."""

_SIDE = 64
"""Longest side of a stored crop in px; a larger one is averaged over squares of pixels."""

MOST_SIZES = 4
"""Sizes of images whose fields are measured; for images of further sizes, they are the image."""


@dataclass(slots=True)
class PatchSearch:
    """Finds the crops that excite each channel most; each image runs once.

    Memory holds one batch, and per searched channel ``k`` crops of at most 64 px; it does not
    grow with the number of images.

    Attributes:
        model: Any module; it runs in eval mode and is restored afterwards.
        layers: Which layers, as in ``extract``.
        k: Number of crops per channel.
        channels: The first channels of a layer that are searched; None for all.
        one_per_image: Take at most one crop of an image per channel.
        batch_size: Maximum number of images per pass.
        say: Called with a message if images run one at a time, or have too many sizes.
        images: Number of images so far.
        nan: Names of those with NaN in a layer's output.
        infinite: Names of those with infinity in a layer's output.

    Raises:
        ConfigurationError: ``k`` or ``channels`` is invalid.
    """

    model: nn.Module
    layers: Layers = None
    k: int = 9
    channels: int | None = 64
    one_per_image: bool = True
    batch_size: int = 4
    say: Callable[[str], object] = str
    images: int = 0
    nan: list[str] = field(default_factory=list)
    infinite: list[str] = field(default_factory=list)
    _of_layer: dict[str, _LayerSearch] = field(default_factory=dict)
    _fields: dict[tuple[int, ...], MeasuredFields] = field(default_factory=dict)
    _registry: HookRegistry = field(init=False)

    def __post_init__(self) -> None:
        _check_count("k", self.k)
        if self.channels is not None:
            _check_count("channels", self.channels)
        self._registry = HookRegistry(self.model, self.layers)

    def add(self, images: Tensor, pictures: Sequence[Bytes8], names: Sequence[str]) -> None:
        """Run the model on images and keep the crops that belong to the best so far.

        Args:
            images: [B, C, H, W], as the model takes them.
            pictures: For each image, u8 [H, W, 3] to cut the crops from.
            names: One per image.

        Raises:
            ForwardError: The model raised an exception.
            CaptureError: A layer's output cannot be assigned to images.
        """
        measured = self._measured(images[:1])
        images_per_pass = self.batch_size if measured.separable else 1
        for first in range(0, len(images), images_per_pass):
            batch = slice(first, first + images_per_pass)
            seen = self._run(images[batch])
            named = zip(pictures[batch], names[batch], strict=True)
            for number, (picture, name) in enumerate(named):
                source = _Source(picture, name, self.images)
                self._add(seen, number, source, measured)

    def _add(self, seen: _Outputs, number: int, source: _Source, measured: MeasuredFields) -> None:
        """Add one image of a batch."""
        for label, output in seen.outputs.items():
            search = self._of_layer.get(label)
            if search is None:
                search = _LayerSearch(output, self.k)
                self._of_layer[label] = search
            fields = measured.of(label, output.grid, source.size)
            search.add(output, number, source, fields)
        if seen.has_nan[number]:
            self.nan.append(source.name)
        if seen.has_infinity[number]:
            self.infinite.append(source.name)
        self.images += 1

    def result(self) -> dict[str, LayerPatches]:
        """The crops by label of the layer call, in call order."""
        found = {}
        for label, search in self._of_layer.items():
            found[label] = search.result(self.images)
        return found

    def _measured(self, image: Tensor) -> MeasuredFields:
        """The fields of images of this one's size."""
        size = tuple(image.shape[1:])
        fields = self._fields.get(size)
        if fields is None:
            is_measured = len(self._fields) < MOST_SIZES
            fields = self._measure(image) if is_measured else self._unmeasured()
            self._fields[size] = fields
        return fields

    def _measure(self, image: Tensor) -> MeasuredFields:
        height, width = image.shape[-2:]
        self.say(f"Measuring receptive fields, for images of {height}×{width} px")
        run = partial(run_side_pass, probe=image)
        with explained(self._registry.model, run):
            measured = measure_fields(self._registry, image, self.batch_size)
        if not measured.separable:
            self.say("Running one image per forward pass: the images of a batch may interact")
        return measured

    def _unmeasured(self) -> MeasuredFields:
        """Whole images, for one more size than are measured."""
        if len(self._fields) == MOST_SIZES:
            self.say(f"More than {MOST_SIZES} image sizes: of the others, crops are whole images")
        every = self._fields.values()
        separable = all(measured.separable for measured in every)
        return MeasuredFields({}, separable, "the number of image sizes")

    def _run(self, images: Tensor) -> _Outputs:
        most = 1 if self.one_per_image else self.k
        seen = _Outputs(len(images), most, self.channels)
        run = partial(run_side_pass, probe=images)
        run_recorded(self._registry, seen, run)
        return seen


def _check_count(name: str, value: Any) -> None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise ConfigurationError(f"{name}={value!r}: expected at least 1")


class _Output(NamedTuple):
    """What is kept of a layer's output for N images.

    Attributes:
        channels: Number of channels, of which C are searched.
        grid: Axes of the positions.
        values: f64 [N, C, m], the largest values.
        positions: int64 [N, C, m], where they are.
        nan: int64 [N, C], numbers of NaN.
    """

    layer_call: LayerCall
    channels: int
    grid: Grid
    values: Doubles
    positions: Ints
    nan: Ints


def best_positions(values: Tensor, most: int) -> tuple[Doubles, Ints]:
    """The positions with the largest values, in descending order; the first of equal ones.

    Args:
        values: [N, C, P]. NaN is left out; infinity is the largest value.
        most: Number of positions per image and channel; fewer if there are fewer.

    Returns:
        The values and the positions, both [N, C, min(most, P)]. Where there are fewer numbers than
        that, the value is NaN.
    """
    if most == 1 and not torch.isnan(values).any():
        found, places = values.max(-1, keepdim=True)  # [N, C, 1]
    else:
        _, order = torch.sort(-values, stable=True)  # NaN is last
        places = order[..., :most]  # [N, C, most]
        found = values.gather(-1, places)
    best = found.double().cpu()
    positions = places.cpu()
    return best.numpy(), positions.numpy()


class _Outputs(CaptureListener):
    """A ``CaptureListener`` that reduces outputs to their best positions.

    Attributes:
        outputs: By label of the layer call.
        has_nan: bool [N], images with NaN in any channel of an output.
        has_infinity: bool [N], likewise.
    """

    def __init__(self, images: int, most: int, channels: int | None) -> None:
        self._images = images
        self._most = most
        self._channels = channels
        self.begin((), {})

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.outputs: dict[str, _Output] = {}
        self.has_nan = np.zeros(self._images, np.bool_)
        self.has_infinity = np.zeros(self._images, np.bool_)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        try:
            maps = maps_of(value, module, self._images)
        except ValueError as error:
            raise CaptureError(f"{layer_call.label}: {error}; try batch_size=1") from error
        if maps is None:
            return
        values, grid = maps
        searched = values[:, : self._channels]
        with aside(values.device.type, values.nbytes):
            best, positions = best_positions(searched, self._most)
            nan = torch.isnan(searched).sum(-1).cpu()  # [N, C]
            has_nan = torch.isnan(values)
            has_infinity = torch.isinf(values)
            self.has_nan |= _any_per_image(has_nan)
            self.has_infinity |= _any_per_image(has_infinity)
        self.outputs[layer_call.label] = _Output(
            layer_call,
            channels=values.shape[1],
            grid=grid,
            values=best,
            positions=positions,
            nan=nan.numpy(),
        )


def _any_per_image(flags: Tensor) -> Bools:
    """Whether any of the flags [N, C, P] of an image is set, bool [N]."""
    per_image = flags.flatten(1).any(1)  # [N]
    found: Bools = per_image.cpu().numpy()
    return found


class _Cut(NamedTuple):
    """A part of an image.

    Attributes:
        pixels: u8 [H, W, 3].
        block: Side in px of the square of the image that became a pixel.
    """

    pixels: Bytes8
    block: int


class _Source:
    """An image to cut crops from; crops of equal place share their pixels."""

    def __init__(self, picture: Bytes8, name: str, number: int) -> None:
        self.picture = picture
        self.name = name
        self.number = number
        height, width, _ = picture.shape
        self.size = (height, width)
        self._cut: dict[tuple[Box, int], _Cut] = {}

    def cut(self, box: Box, cell: tuple[int, int]) -> _Cut:
        """A part of the image, shrunk so that a part as large as ``cell`` fits."""
        top, left, bottom, right = box
        height = bottom - top
        width = right - left
        longest = max(*cell, height, width)
        block = ceil_div(longest, _SIDE)
        place = (box, block)
        cut = self._cut.get(place)
        if cut is None:
            pixels = self.picture[top:bottom, left:right]
            if block > 1:
                planes = pixels.transpose(2, 0, 1)  # [3, H, W]
                shrunk, *_ = shrink_pixels(planes, None, block)
                pixels = shrunk.transpose(1, 2, 0)  # [H, W, 3]
            own = pixels.copy()  # not a view of the image
            cut = _Cut(own, block)
            self._cut[place] = cut
        return cut


class _LayerSearch:
    """The best crops of one layer call so far, in a stable order.

    Args:
        output: The layer's first output.
        k: Number of crops to keep per channel.
    """

    def __init__(self, output: _Output, k: int) -> None:
        self._call = output.layer_call
        self._channels = output.channels
        self._k = k
        _, searched, _ = output.values.shape
        self._values = np.full((searched, k), np.nan)  # descending; NaN where there is none yet
        self._crops: npt.NDArray[np.object_] = np.full((searched, k), None, object)
        self._nan = np.zeros(searched, np.int64)
        self._cell = (1, 1)
        self._lost_at: str | None = None

    def add(self, output: _Output, number: int, source: _Source, fields: Fields) -> None:
        """Add one image of a batch, which comes after all earlier ones."""
        height, width = fields.largest
        highest, widest = self._cell
        highest = max(height, highest)
        widest = max(width, widest)
        self._cell = (highest, widest)
        self._lost_at = self._lost_at or fields.lost_at
        self._nan += output.nan[number]
        added = output.values[number]  # [C, m]
        values = np.concatenate([self._values, added], 1)  # [C, k + m]
        order = np.argsort(-values, axis=1, kind="stable")  # NaN is last
        order = order[:, : self._k]  # [C, k]
        self._values = np.take_along_axis(values, order, 1)
        kept = np.minimum(order, self._k - 1)
        self._crops = np.take_along_axis(self._crops, kept, 1)
        is_found = ~np.isnan(self._values)
        is_new = is_found & (order >= self._k)
        new_places = np.argwhere(is_new)
        for channel, rank in new_places.tolist():
            nth = order[channel, rank] - self._k
            position = int(output.positions[number, channel, nth])
            value = float(self._values[channel, rank])
            crop = _crop(value, position, source, fields)
            self._crops[channel, rank] = crop

    def result(self, images: int) -> LayerPatches:
        crops = []
        for row, values in zip(self._crops, self._values, strict=True):
            is_found = ~np.isnan(values)
            best = row[: np.count_nonzero(is_found)]
            crops.append(tuple(best))
        return LayerPatches(
            self._call,
            channels=self._channels,
            crops=tuple(crops),
            k=self._k,
            images=images,
            cell=self._cell,
            nan=tuple(self._nan.tolist()),
            lost_at=self._lost_at,
        )


def _crop(value: float, position: int, source: _Source, fields: Fields) -> Crop:
    """The part of an image that a position depends on."""
    top, left, bottom, right = map(int, fields.boxes[position])
    box = (top, left, bottom, right)
    cut = source.cut(box, fields.largest)
    axes: tuple[Any, ...] = ()
    if fields.grid:
        axes = np.unravel_index(position, fields.grid)
    return Crop(
        value,
        image=source.number,
        name=source.name,
        position=tuple(map(int, axes)),
        field=box,
        size=source.size,
        spot=_place_in_image(position, fields.grid, source.size),
        pixels=cut.pixels,
        block=cut.block,
    )


def _place_in_image(
    position: int, grid: Grid, image: tuple[int, int]
) -> tuple[float, float] | None:
    """Where in the image a position lies, as (y, x) in px; None if the axes are not an image's.

    Maps are taken to cover the image evenly, as do tokens that may be its patches after the prefix
    tokens.
    """
    if len(grid) == 1:
        patches = guessed_grid(image, grid[0])
        if patches is not None:
            grid = (patches.height, patches.width)
            position -= patches.prefix
    if len(grid) != 2 or position < 0:
        return None
    rows, columns = grid
    row, column = divmod(position, columns)
    height, width = image
    y = (row + 0.5) / rows * height
    x = (column + 0.5) / columns * width
    return y, x
