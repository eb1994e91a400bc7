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

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.measure.layout import as_maps, axes_of
from fmapboard.model.tensors import first_tensor, is_observable, tensors
from fmapboard.records import LayerCall

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


class Fields(NamedTuple):
    """The part of an image that each position of a layer can depend on.

    Attributes:
        grid: Axes of the positions: those of the layer's output without samples and channels.
        boxes: int64 [P, 4], top, left, bottom and right of each position in px, the latter two
            exclusive. It contains the receptive field of every channel at that position. That of
            a position that depends on no pixel, such as a class token, is the whole image.
        lost_at: Name of an operation because of which the whole image is given; None otherwise.
        constant: bool [P], the positions that depend on no pixel; None for none.
    """

    grid: tuple[int, ...]
    boxes: Ints
    lost_at: str | None = None
    constant: Bools | None = None

    @classmethod
    def whole(cls, grid: tuple[int, ...], size: tuple[int, ...], lost_at: str) -> Fields:
        """The whole image, of height and width ``size``, for every position."""
        return cls(grid, np.tile([0, 0, *size], (math.prod(grid), 1)), lost_at)

    @property
    def largest(self) -> tuple[int, int]:
        """Height and width in px of the largest box in each direction, without constant ones."""
        boxes = self.boxes
        if self.constant is not None and not self.constant.all():
            boxes = boxes[~self.constant]
        sides = boxes[:, 2:] - boxes[:, :2]
        height, width = (int(side) for side in sides.max(0))
        return height, width


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

    def of(self, label: str, grid: tuple[int, ...], size: tuple[int, int]) -> Fields:
        """The fields of a layer call.

        They are the whole image if the layer did not run on the measured image, or returned another
        grid, as with tokens that are pruned by their values.

        Args:
            label: Of the call.
            grid: Axes of the positions that it returned.
            size: Height and width of the image in px.
        """
        if label not in self.of_layer:
            self.of_layer[label] = Fields.whole(grid, size, self.unknown)
        known = self.of_layer[label]
        return known if known.grid == grid else Fields.whole(grid, size, OTHER_GRID)


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
    size = batch_size if separable else 1
    rows, columns = (_Extents(registry, image, axis, size) for axis in (-2, -1))
    grids = {label: grid for label, grid in alone.grids.items() if label not in lost}
    try:
        spans = rows(grids), columns(grids)
    except Exception:
        lost, spans = dict.fromkeys(alone.grids, _FAILS), ({}, {})
    size_px = tuple(image.shape[-2:])
    found = {}
    for label, grid in alone.grids.items():
        if label in lost:
            found[label] = Fields.whole(grid, size_px, lost[label])
            continue
        (top, bottom), (left, right) = (span[label].T for span in spans)
        boxes = np.stack([top, left, bottom, right], 1)
        constant = np.any(boxes[:, :2] >= boxes[:, 2:], axis=1)
        boxes[constant] = [0, 0, *size_px]
        found[label] = Fields(grid, boxes, None, constant)
    return MeasuredFields(found, separable)


def _lost(registry: HookRegistry, image: Tensor, alone: Seen) -> tuple[dict[str, str], bool]:
    """The layers that run after NaN may have been lost, and whether images are independent.

    A pass on two images, one of them NaN throughout; if that is impossible, only on that one.
    """
    if not image.is_floating_point():
        return dict.fromkeys(alone.grids, f"the input, which is {image.dtype}"), True
    pair = torch.cat([torch.full_like(image, torch.nan), image])
    seen = _watched(registry, pair)
    separable = (
        seen is not None
        and not seen.lost  # else an image may have an influence without NaN
        and seen.grids == alone.grids
        and all((seen.hits[label][1] == hit[0]).all() for label, hit in alone.hits.items())
    )
    if not separable:
        seen = _watched(registry, pair[:1])
    if seen is None:
        return dict.fromkeys(alone.grids, _FAILS), separable
    others = {
        label: CONTROL_FLOW for label, grid in alone.grids.items() if seen.grids.get(label) != grid
    }
    return {**seen.lost, **others}, separable


def maps_of(value: Any, module: nn.Module, images: int) -> tuple[Tensor, tuple[int, ...]] | None:
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
    maps = as_maps(tensor, axes_of(module, tensor.shape)).maps
    if maps.shape[0] == 1:
        maps = maps.expand(images, *maps.shape[1:])
    elif maps.shape[0] != images:
        if images != 1:
            raise ValueError(f"{maps.shape[0]} samples in the output for {images} images")
        maps = maps.movedim(0, 1).unsqueeze(0)  # [1, C, N, *spatial]
    grid = tuple(maps.shape[2:])
    return maps.reshape(*maps.shape[:2], math.prod(grid)), grid


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
        self._images, self._flow = images, flow
        self.grids: dict[str, tuple[int, ...]] = {}
        self.hits: dict[str, Bools] = {}
        self.lost: dict[str, str] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Note where an output is NaN."""
        maps, label = maps_of(value, module, self._images), layer_call.label
        if maps is None:
            return
        values, self.grids[label] = maps
        with aside(values.device.type, values.nbytes):
            self.hits[label] = torch.isnan(values).any(1).cpu().numpy()  # [N, P]
        if self._flow is not None and self._flow.lost_at is not None:
            self.lost[label] = self._flow.lost_at


def _seen(registry: HookRegistry, images: Tensor, flow: NanFlow | None = None) -> Seen:
    """What a pass on images [N, C, H, W] shows; with ``flow``, also what lost NaN."""
    seen = Seen(len(images), flow)
    # Other algorithms for convolutions compute with pixels outside the kernel, times 0.
    with (
        torch.backends.cudnn.flags(enabled=False),
        torch.backends.nnpack.flags(enabled=False),
        registry.listening(seen),
    ):
        run_side_pass(registry.model, images)
    return seen


def _watched(registry: HookRegistry, images: Tensor) -> Seen | None:
    """What a pass showed while it was watched for operations that lose NaN; None if it failed."""
    try:
        with NanFlow() as flow:
            return _seen(registry, images, flow)
    except Exception:  # of any type: the model was not made for NaN
        return None


class _Extents:
    """The first and the last row, or column, that each position depends on."""

    def __init__(self, registry: HookRegistry, image: Tensor, axis: int, batch_size: int) -> None:
        self._registry, self._image, self._axis = registry, image, axis
        self._batch_size, self._length = batch_size, image.shape[axis]

    def __call__(self, grids: Mapping[str, tuple[int, ...]]) -> dict[str, Ints]:
        """Label -> int64 [P, 2], the first row and the one after the last."""
        length = self._length
        spans = {name: np.tile([0, length], (math.prod(grid), 1)) for name, grid in grids.items()}
        thickness = -(-length // _FIRST_BANDS)
        period = thickness * _FIRST_BANDS
        while spans:
            open_ = {name: self._separate(span, thickness, period) for name, span in spans.items()}
            if any(rows.any() for rows in open_.values()):
                self._narrow(spans, open_, thickness, period)
            if thickness == 1:
                break
            thickness = -(-thickness // _THINNER)
            period = thickness * _BANDS
        return spans

    def _separate(self, span: Ints, thickness: int, period: int) -> Bools:
        """The positions whose rows lie in bands that are never NaN at the same time."""
        sides = span[:, 1] - span[:, 0]
        if period >= self._length:
            return sides > thickness
        return (sides > thickness) & (sides <= period - thickness)

    def _narrow(
        self, spans: dict[str, Ints], open_: dict[str, Bools], thickness: int, period: int
    ) -> None:
        first = {name: np.full(len(span), self._length) for name, span in spans.items()}
        last = {name: np.zeros(len(span), np.int64) for name, span in spans.items()}
        offsets = range(0, min(period, self._length), thickness)
        for start, hits in self._hits(offsets, thickness, period):
            for name, span in spans.items():
                at = open_[name] & hits[name]
                low, high = span[at, 0], span[at, 1]
                # The only one of the bands start, start + period, ... within the span.
                band = start + period * -(-(low - start - thickness + 1) // period)
                first[name][at] = np.minimum(first[name][at], np.maximum(band, low))
                last[name][at] = np.maximum(last[name][at], np.minimum(band + thickness, high))
        for name, span in spans.items():
            at = open_[name]
            span[at] = np.stack([first[name][at], last[name][at]], 1)

    def _hits(
        self, offsets: Sequence[int], thickness: int, period: int
    ) -> Iterator[tuple[int, dict[str, Bools]]]:
        """Offset of the bands that are NaN, and label -> bool [P], which positions they reach."""
        for some in range(0, len(offsets), self._batch_size):
            starts = offsets[some : some + self._batch_size]
            probes = torch.cat([self._with_nan(start, thickness, period) for start in starts])
            seen = _seen(self._registry, probes)
            for number, start in enumerate(starts):
                yield start, {name: hit[number] for name, hit in seen.hits.items()}

    def _with_nan(self, start: int, thickness: int, period: int) -> Tensor:
        image = self._image.clone()
        moved = image.movedim(self._axis, 0)
        rows = torch.arange(self._length, device=image.device) - start
        moved[(rows % period) < thickness] = torch.nan
        return image


# Operations whose output depends on NaN without being NaN.
#
# The fields are measured with NaN, which spreads through arithmetic: an output that is not NaN
# does not depend on the pixels that were. That does not hold for comparisons, sorting, indices, and
# other operations that are found here.

_NAMESPACES = frozenset({"aten", "prim", "prims"})
"""Operations of other libraries may treat NaN in any way."""

_UNSOUND = frozenset(
    {
        *("fmax", "fmin", "nansum", "nanmedian", "nanquantile", "nan_to_num", "nan_to_num_"),
        *("sort", "topk", "kthvalue", "mode", "fractional_max_pool2d", "fractional_max_pool3d"),
        *("grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler", "renorm", "renorm_"),
        *("quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic"),
    }
)
"""Operations that return a number although one of the numbers that they compare or use as a
coordinate is NaN."""

_OVERWRITING = frozenset({"zero_", "fill_", "copy_"})
"""Operations whose result does not depend on the values of their first argument."""


_SELECTING = frozenset(
    {
        *("index", "index_select", "gather", "take", "take_along_dim", "masked_select"),
        *("embedding", "constant_pad_nd", "pad", "narrow_copy", "slice_copy", "select_copy"),
        *("split_copy", "split_with_sizes_copy", "unbind_copy", "unsafe_split", "unsafe_chunk"),
        *("unsafe_split_with_sizes", "index_put", "index_put_", "slice_scatter", "select_scatter"),
        *("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"),
    }
)
"""Operations that may leave out the values that are NaN, or read no values."""

_NEW = ("_like",)
"""Ends of the names of operations that take only the shape of a tensor."""

_LEAVING = ("numpy", "tolist", "__array__", "__dlpack__")
"""Methods of tensors that read values without an operation of torch."""


class NanFlow(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch
    """While active, notes the first operation that may lose NaN.

    Such an operation is one that

    - turns NaN into a Python number, on which the model's control flow may depend, or gives it to
      another library;
    - uses an integer or bool tensor that was computed from NaN, such as ``mask`` in ``x * mask``;
    - receives NaN and returns numbers without any, unless it only selects some of the values;
    - is in ``_UNSOUND``, or belongs to another library than torch.

    Attributes:
        lost_at: Name of that operation; None as long as there is none.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.lost_at: str | None = None
        # Kept alive: a new tensor could otherwise get the identity of one that was freed.
        self._from_nan: dict[int, Tensor] = {}
        self._patched = ExitStack()

    def __enter__(self) -> NanFlow:
        super().__enter__()  # type: ignore[no-untyped-call]  # torch
        for name in _LEAVING:
            self._watch(name)
        return self

    def __exit__(self, *error: Any) -> None:
        self._patched.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch

    def _watch(self, name: str) -> None:
        """Replace a method of all tensors by one that notes NaN before it is read.

        A ``TorchFunctionMode`` would see these calls, too, but attention takes another path in it.
        """
        original = getattr(Tensor, name)

        @functools.wraps(original)
        def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.lost_at is None:
                with _disable_current_modes():
                    if id(tensor) in self._from_nan or _has_nan(tensor):
                        self.lost_at = name
            return original(tensor, *args, **kwargs)

        self._patched.enter_context(patch.object(Tensor, name, method))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.lost_at is not None:
            return func(*args, **kwargs)
        given = tensors((args, kwargs))
        read = given[func.overloadpacket.__name__ in _OVERWRITING :]
        has_nan = any(map(_has_nan, read))  # before: the operation may be in place
        is_derived = any(id(tensor) in self._from_nan for tensor in given)
        returned = func(*args, **kwargs)
        if is_derived or (has_nan and self._loses(func, returned)):
            self.lost_at = func.overloadpacket.__name__
        return returned

    def _loses(self, func: Any, returned: Any) -> bool:
        name = func.overloadpacket.__name__
        if func.namespace not in _NAMESPACES or name in _UNSOUND:
            return True
        found = tensors(returned)
        if not found:
            return returned is not None
        for tensor in found:
            if not _is_real(tensor):
                self._from_nan[id(tensor)] = tensor
        real = [tensor for tensor in found if _is_real(tensor)]
        if not any(tensor.numel() for tensor in real) or any(map(_has_nan, real)):
            return False
        return name not in _SELECTING and not name.endswith(_NEW) and not _is_view(func)


def _is_view(func: Any) -> bool:
    """Whether an operation returns a part of its argument, and does not write to it."""
    returns = (one.alias_info for one in func._schema.returns)
    return any(alias is not None and not alias.is_write for alias in returns)


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _has_nan(tensor: Tensor) -> bool:
    return _is_real(tensor) and bool(torch.isnan(tensor).any())
