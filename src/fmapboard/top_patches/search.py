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

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.errors import CaptureError, ConfigurationError
from fmapboard.extraction.call_trace import explained, run_recorded
from fmapboard.measure.layout import square_of
from fmapboard.model.layers import Layers
from fmapboard.records import Bytes8, Crop, LayerCall, LayerPatches
from fmapboard.render.quantize import shrink_pixels
from fmapboard.top_patches.fields import Fields, MeasuredFields, maps_of, measure_fields

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

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
        most = 1 if self.channels is None else self.channels
        for name, value in (("k", self.k), ("channels", most)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name}={value!r}: expected at least 1")
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
        fields = self._measured(images[:1])
        size = self.batch_size if fields.separable else 1
        for first in range(0, len(images), size):
            some = slice(first, first + size)
            seen = self._run(images[some])
            for number, (picture, name) in enumerate(zip(pictures[some], names[some], strict=True)):
                source = _Source(picture, name, self.images)
                for label, output in seen.outputs.items():
                    if label not in self._of_layer:
                        self._of_layer[label] = _LayerSearch(output, self.k)
                    own = fields.of(label, output.grid, source.size)
                    self._of_layer[label].add(output, number, source, own)
                self.nan += [name] * bool(seen.has_nan[number])
                self.infinite += [name] * bool(seen.has_infinity[number])
                self.images += 1

    def result(self) -> dict[str, LayerPatches]:
        """The crops by label of the layer call, in call order."""
        return {label: one.result(self.images) for label, one in self._of_layer.items()}

    def _measured(self, image: Tensor) -> MeasuredFields:
        size = tuple(image.shape[1:])
        if size in self._fields:
            return self._fields[size]
        if len(self._fields) < MOST_SIZES:
            self.say(f"Measuring receptive fields, for images of {size[1]}×{size[2]} px")
            run = partial(run_side_pass, self._registry.model, image)
            with explained(self._registry.model, run):
                measured = measure_fields(self._registry, image, self.batch_size)
            if not measured.separable:
                self.say("Running one image per forward pass: the images of a batch may interact")
        else:
            separable = all(one.separable for one in self._fields.values())
            measured = MeasuredFields({}, separable, "the number of image sizes")
            if len(self._fields) == MOST_SIZES:
                self.say(
                    f"More than {MOST_SIZES} image sizes: of the others, crops are whole images"
                )
        self._fields[size] = measured
        return measured

    def _run(self, images: Tensor) -> _Outputs:
        seen = _Outputs(len(images), 1 if self.one_per_image else self.k, self.channels)
        run_recorded(self._registry, seen, partial(run_side_pass, self._registry.model, images))
        return seen


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
    grid: tuple[int, ...]
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
        found, places = values.max(-1, keepdim=True)
    else:
        places = torch.sort(-values, stable=True)[1][..., :most]  # NaN is last
        found = values.gather(-1, places)
    return found.double().cpu().numpy(), places.cpu().numpy()


class _Outputs(CaptureListener):
    """A ``CaptureListener`` that reduces outputs to their best positions.

    Attributes:
        outputs: By label of the layer call.
        has_nan: bool [N], images with NaN in any channel of an output.
        has_infinity: bool [N], likewise.
    """

    def __init__(self, images: int, most: int, channels: int | None) -> None:
        self._images, self._most, self._channels = images, most, channels
        self.begin((), {})

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.outputs: dict[str, _Output] = {}
        self.has_nan, self.has_infinity = np.zeros((2, self._images), np.bool_)

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
            nan = torch.isnan(searched).sum(-1).cpu().numpy()
            self.has_nan |= torch.isnan(values).flatten(1).any(1).cpu().numpy()
            self.has_infinity |= torch.isinf(values).flatten(1).any(1).cpu().numpy()
        self.outputs[layer_call.label] = _Output(
            layer_call, values.shape[1], grid, best, positions, nan
        )


class _Source:
    """An image to cut crops from; crops of equal place share their pixels."""

    def __init__(self, picture: Bytes8, name: str, number: int) -> None:
        self.picture, self.name, self.number = picture, name, number
        self.size = (picture.shape[0], picture.shape[1])
        self._cut: dict[tuple[int, ...], tuple[Bytes8, int]] = {}

    def cut(self, box: tuple[int, ...], cell: tuple[int, int]) -> tuple[Bytes8, int]:
        """A part of the image, shrunk so that a part as large as ``cell`` fits; and its block."""
        top, left, bottom, right = box
        block = -(-max(*cell, bottom - top, right - left) // _SIDE)
        place = (*box, block)
        if place not in self._cut:
            part = self.picture[top:bottom, left:right]
            if block > 1:
                part = shrink_pixels(part.transpose(2, 0, 1), None, block)[0].transpose(1, 2, 0)
            self._cut[place] = part.copy(), block  # not a view of the image
        return self._cut[place]


class _LayerSearch:
    """The best crops of one layer call so far, in a stable order.

    Args:
        output: The layer's first output.
        k: Number of crops to keep per channel.
    """

    def __init__(self, output: _Output, k: int) -> None:
        self._call, self._channels, self._k = output.layer_call, output.channels, k
        searched = output.values.shape[1]
        self._values = np.full((searched, k), np.nan)  # descending; NaN where there is none yet
        self._crops: npt.NDArray[np.object_] = np.full((searched, k), None, object)
        self._nan = np.zeros(searched, np.int64)
        self._cell = (1, 1)
        self._lost_at: str | None = None

    def add(self, output: _Output, number: int, source: _Source, fields: Fields) -> None:
        """Add one image of a batch, which comes after all earlier ones."""
        cell = fields.largest
        self._cell = (max(cell[0], self._cell[0]), max(cell[1], self._cell[1]))
        self._lost_at = self._lost_at or fields.lost_at
        self._nan += output.nan[number]
        values = np.concatenate([self._values, output.values[number]], 1)  # [C, k + m]
        order = np.argsort(-values, axis=1, kind="stable")[:, : self._k]  # NaN is last
        self._values = np.take_along_axis(values, order, 1)
        self._crops = np.take_along_axis(self._crops, np.minimum(order, self._k - 1), 1)
        is_new = (order >= self._k) & ~np.isnan(self._values)
        for channel, rank in np.argwhere(is_new).tolist():
            place = int(output.positions[number, channel, order[channel, rank] - self._k])
            value = float(self._values[channel, rank])
            self._crops[channel, rank] = _crop(value, place, source, fields)

    def result(self, images: int) -> LayerPatches:
        valid = ~np.isnan(self._values)
        crops = tuple(
            tuple(row[: known.sum()]) for row, known in zip(self._crops, valid, strict=True)
        )
        return LayerPatches(
            self._call, self._channels, crops, self._k, images, self._cell,
            tuple(self._nan.tolist()), self._lost_at,
        )  # fmt: skip


def _crop(value: float, place: int, source: _Source, fields: Fields) -> Crop:
    """The part of an image that a position depends on."""
    top, left, bottom, right = map(int, fields.boxes[place])
    box = (top, left, bottom, right)
    pixels, block = source.cut(box, fields.largest)
    axes = np.unravel_index(place, fields.grid) if fields.grid else ()
    return Crop(
        value,
        source.number,
        source.name,
        tuple(map(int, axes)),
        box,
        source.size,
        _place_in_image(place, fields.grid, source.size),
        pixels,
        block,
    )


def _place_in_image(
    position: int, grid: tuple[int, ...], image: tuple[int, int]
) -> tuple[float, float] | None:
    """Where in the image a position lies, as (y, x) in px; None if the axes are not an image's.

    Maps are taken to cover the image evenly, as do tokens that fill a square after the prefix
    tokens.
    """
    square = square_of(grid[0]) if len(grid) == 1 else None
    if square is not None:
        prefix, side = square
        grid, position = (side, side), position - prefix
    if len(grid) != 2 or position < 0:
        return None
    y, x = divmod(position, grid[1])
    return (y + 0.5) / grid[0] * image[0], (x + 0.5) / grid[1] * image[1]
