"""Reduce a captured tensor to statistics, a histogram sample and a copy of what is drawn.

On the training thread, ``Reducer`` computes the sums that the statistics need and copies the
histogram sample and the part that is drawn. Nothing that is kept aliases the live tensor, which the
next operation may overwrite. ``to_host`` does the rest in the worker thread. Call a ``Reducer``
inside ``isolation.aside``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.arithmetic import ceil_div
from fmapboard.health.states import dead_heads
from fmapboard.measure.device import HALVES, plane_extremes
from fmapboard.measure.kept_tokens import image_of_tokens, token_norms
from fmapboard.measure.layout import (
    MapsView,
    Sequences,
    as_maps,
    as_pictures,
    axes_of,
    other_slices,
)
from fmapboard.measure.sample import PendingSample, sample
from fmapboard.measure.statistics import (
    Key,
    PendingStatistics,
    finalize,
    statistics,
    statistics_on_device,
)
from fmapboard.records import (
    ONE_PASS,
    Floats,
    HeadNumbers,
    LayerCall,
    LayerMeasurement,
    Layout,
    PassCount,
    Planes,
    Slices,
    Statistics,
    TensorKind,
)
from fmapboard.render.quantize import Averaged, Quantizer, longest

Extremes = tuple[Tensor, Tensor]
"""Min and max [N, C] of each plane."""


_VOLUME = 5
"""Number of axes of maps [N, C, D, H, W]."""
_SLICES_PIXELS = 3 * 2**18
"""Pixels of all depth slices of a layer that are kept: three of 64 channels of 64 × 64 px."""


class PendingMaps(NamedTuple):
    """The part of a tensor that is drawn: a copy that is still on the device.

    Attributes:
        maps: [N, C, H, W], f32 or f64; on accelerators also f16 or bf16.
        channels: Number of channels of the whole tensor.
        view: How the tensor was converted to maps; empty for plain [N, C, H, W].
        counted: True if each channel's statistics cover exactly its drawn plane, so that their
            extremes can be used as the drawn range.
        layout: ``"rows"`` for sequences, otherwise ``"tiles"``.
        block: Side in px of the squares that were averaged into one pixel on the device; 1 for
            none.
        extremes: Min and max [N, C] of each plane before it was averaged; None if ``block`` is 1.
    """

    maps: Tensor
    channels: int
    view: str
    counted: bool = False
    layout: Layout = "tiles"
    block: int = 1
    extremes: Extremes | None = None


class PendingSlices(NamedTuple):
    """``records.Slices`` whose maps are still on the device."""

    maps: PendingMaps
    depths: tuple[int, ...]
    drawn: int


class PendingMeasurement(NamedTuple):
    """A ``records.LayerMeasurement`` whose parts are still on the device."""

    layer_call: LayerCall
    kind: TensorKind
    shape: tuple[int, ...]
    quantize: Quantizer
    drawn: PendingMaps | None = None
    statistics: PendingStatistics | Statistics | None = None
    sample: PendingSample | None = None
    passes: PassCount = ONE_PASS
    heads: Tensor | None = None  # [8, H], the arrays of HeadNumbers
    tokens: Tensor | None = None  # [h, w, C]
    token_norms: Tensor | None = None  # [3]
    slices: PendingSlices | None = None

    def to_host(self) -> LayerMeasurement:
        """Wait for the device, then finalize and quantize.

        Call it in step order, because later steps reuse the locked scales of earlier ones.
        """
        numbers = self.statistics
        if isinstance(numbers, PendingStatistics):
            numbers = numbers.to_host()
        heads = None if self.heads is None else HeadNumbers(*_wide(self.heads))
        if heads is not None and numbers is not None:
            ends_of_rows = numbers.minimum, numbers.maximum
            numbers = replace(numbers, dead=dead_heads(heads.entropy, heads.logit, *ends_of_rows))
        planes = None if self.drawn is None else self._planes(self.drawn, numbers, self.kind)
        slices: Slices | None = None
        if self.slices is not None:
            other_planes = self._planes(self.slices.maps, None, "slices")  # a scale of its own
            slices = Slices(other_planes, self.slices.depths, self.slices.drawn)
        ends: tuple[float, ...] = ()
        if self.sample is not None and numbers is not None and not np.isnan(numbers.minimum).all():
            ends = float(np.nanmin(numbers.minimum)), float(np.nanmax(numbers.maximum))
        return LayerMeasurement(
            layer_call=self.layer_call,
            kind=self.kind,
            planes=planes,
            statistics=numbers,
            sample=None if self.sample is None else self.sample.to_host(*ends),
            shape=self.shape,
            passes=self.passes,
            heads=heads,
            tokens=None if self.tokens is None else _wide(self.tokens),
            token_norms=None if self.token_norms is None else _wide(self.token_norms),
            slices=slices,
        )

    def _planes(self, drawn: PendingMaps, numbers: Statistics | None, what: str) -> Planes:
        """Quantize what is drawn; ``what`` identifies its locked scale."""
        maps = _wide(drawn.maps)
        averaged = None
        if drawn.extremes is not None:
            lo, hi = drawn.extremes
            low = _wide(lo).astype(np.float64)
            high = _wide(hi).astype(np.float64)
            averaged = Averaged(drawn.block, low, high)
        return self.quantize(
            (self.layer_call.label, what),
            maps,
            self.shape,
            drawn.channels,
            drawn.view,
            known=_drawn_range(numbers, maps.shape[1]) if drawn.counted else None,
            layout=drawn.layout,
            averaged=averaged,
        )


def with_note(measured: PendingMeasurement, note: str) -> PendingMeasurement:
    """A measurement whose drawn maps say first what they are."""
    if measured.drawn is None or not note:
        return measured
    view = "; ".join(filter(None, [note, measured.drawn.view]))
    return measured._replace(drawn=measured.drawn._replace(view=view))


@dataclass(slots=True)
class Reducer:
    """Reduces captured tensors to measurements.

    Attributes:
        samples: Maximum number of samples that are drawn; None draws all.
        max_channels: Maximum number of channels that are drawn; None draws all.
        depth: Which depth slice of a volume is drawn; None draws the middle one.
        sequences: How tensors with three axes are read.
        quantize: Quantizer of the run; ``dataclasses.replace`` passes it on, including its locked
            scales.
        unsettled: Tensors on an accelerator to be read exactly next time, since the last reading
            found non-finite values or could not resolve the standard deviation (see
            ``device``); filled in the worker thread. None reads every tensor exactly.
        slices: Maximum number of depth slices of a volume that are kept of an output, if ``depth``
            is None.
    """

    samples: int | None = 1
    max_channels: int | None = 64
    depth: int | None = None
    sequences: Sequences = field(default_factory=Sequences)
    quantize: Quantizer = field(default_factory=Quantizer, repr=False)
    unsettled: set[Key] | None = None
    slices: int = 1

    def __call__(
        self,
        layer_call: LayerCall,
        kind: TensorKind,
        tensor: Tensor,
        module: nn.Module,
        *,
        pictures: bool = True,
        numbers: bool = True,
    ) -> PendingMeasurement:
        """Reduce one tensor.

        Args:
            layer_call: The layer call that the tensor belongs to. If its ``pictures`` is False,
                neither maps nor a histogram sample is kept.
            kind: Which tensor of the layer call.
            tensor: Any shape and dtype, not empty. On the CPU it is read before this returns, on
                other devices in stream order; no reference to it is kept.
            module: The layer.
            pictures: Keep the maps to draw.
            numbers: Keep statistics and a histogram sample.
        """
        axes = axes_of(module, tensor.shape, self.sequences, layer_call.part)
        view = as_maps(tensor, axes, self.sequences)
        maps = view.maps
        is_drawn = layer_call.pictures
        counted: PendingStatistics | None = None
        extremes: Extremes | None = None
        if numbers:
            floor = rounded(layer_call.floor, tensor.dtype)  # maps may be wider
            counted = self._statistics(layer_call, kind, maps, floor)
            if not maps.is_cpu and counted.parts[0].dim() == 2:
                extremes = counted.parts[0], counted.parts[1]
        sampled = sample(maps) if numbers and is_drawn else None
        draws = pictures and is_drawn and view.drawable
        kept = self.keep(view, self.samples, extremes) if draws else None
        slices = self._slices(view) if draws and kind == "feature_maps" else None
        part = layer_call.part
        norms: Tensor | None = None
        tokens: Tensor | None = None
        if kind == "feature_maps" and part is not None and part.unit == "feature":
            norms = token_norms(maps) if numbers else None
            tokens = image_of_tokens(view) if draws else None
        return PendingMeasurement(
            layer_call,
            kind,
            tuple(tensor.shape),
            self.quantize,
            drawn=kept,
            statistics=counted,
            sample=sampled,
            tokens=tokens,
            token_norms=norms,
            slices=slices,
        )

    def _statistics(
        self, layer_call: LayerCall, kind: TensorKind, maps: Tensor, floor: float | None
    ) -> PendingStatistics:
        """The numbers of the maps of a layer call."""
        is_drawn = layer_call.pictures
        if maps.is_cpu:
            return statistics(maps, floor, moments=is_drawn)
        known = self.unsettled
        own = None if known is None else (known, (layer_call.label, kind))
        return statistics_on_device(maps, floor, moments=is_drawn, unsettled=own)

    def _slices(self, view: MapsView) -> PendingSlices | None:
        """Copy further depth slices of the drawn samples of a volume; None of other maps."""
        if self.slices < 2 or self.depth is not None or view.maps.dim() != _VOLUME:
            return None
        drawn = view.maps[: self.samples, : self.max_channels]  # [N, C, D, H, W]
        size = drawn.shape[2]
        sides = [min(side, self.quantize.max_tile or side) for side in drawn.shape[3:]]
        pixels = drawn.shape[0] * drawn.shape[1] * math.prod(sides)
        depths = other_slices(size, min(self.slices, _SLICES_PIXELS // max(pixels, 1)))
        if not depths:
            return None
        slices = torch.cat([drawn[:, :, depth] for depth in depths])  # [K*N, C, H, W]
        kept = self.keep(MapsView(slices, note=view.note), None)
        return PendingSlices(kept, depths, size // 2)

    def keep(
        self, view: MapsView, samples: int | None, extremes: Extremes | None = None
    ) -> PendingMaps:
        """Copy the part of a tensor that is drawn; on an accelerator, averaged to its drawn size.

        Args:
            view: The tensor as maps.
            samples: Maximum number of samples to copy; None copies all.
            extremes: Min and max of each plane of ``view.maps``, if they are known.
        """
        maps = view.maps if view.patches is None else view.patches
        drawn, how, layout = as_pictures(maps[:samples, : self.max_channels], self.depth)
        notes = "; ".join(filter(None, [view.note, how]))
        whole = view.patches is None and maps.dim() == drawn.dim()
        counted = whole and len(maps) == 1
        side = max(drawn.shape[2:])
        most = longest(self.quantize.max_tile, layout)
        if drawn.is_cpu or most is None or side <= most:
            copied = drawn.clone(memory_format=torch.contiguous_format)
            return PendingMaps(copied, maps.shape[1], notes, counted, layout)
        if not whole or extremes is None:
            extremes = plane_extremes(drawn.flatten(2))
        lo, hi = extremes
        means, block = average(drawn, most)
        return PendingMaps(
            means,
            maps.shape[1],
            notes,
            counted,
            layout,
            block=block,
            extremes=(lo[:samples, : self.max_channels], hi[:samples, : self.max_channels]),
        )


@lru_cache(maxsize=64)
def rounded(floor: float | None, dtype: torch.dtype) -> float | None:
    """An activation's ``floor`` rounded to the dtype of its output, which may be bfloat16."""
    if floor is None or not dtype.is_floating_point or math.isnan(floor):
        return floor
    return float(torch.tensor(floor, dtype=dtype, device="cpu"))


def average(maps: Tensor, max_side: int) -> tuple[Tensor, int]:
    """Average maps over square blocks until no side exceeds ``max_side`` px.

    As ``render.quantize.shrink`` on the host, but a float32 sum that overflows stays infinite (see
    ``render.quantize.Averaged``).

    Args:
        maps: [N, C, H, W] on an accelerator, with a side longer than ``max_side``.
        max_side: In px.

    Returns:
        Contiguous means [N, C, h, w], f32 or f64, and the block's side in px.
    """
    block = ceil_div(max(maps.shape[2:]), max_side)
    wide = maps.to(torch.float32) if maps.dtype in HALVES else maps
    means: Tensor = functional.avg_pool2d(wide, block, ceil_mode=True)
    return means.contiguous(), block


def joined(
    pending: Sequence[PendingMeasurement], failed: Callable[[str, Exception], None]
) -> tuple[LayerMeasurement, ...]:
    """Finalize the measurements of a step, one per tensor, in the order of the layer calls.

    If a tensor was measured for the training batch and again for the probe, the result has the
    statistics of the first measurement and the planes of the second.

    Args:
        pending: The measurements of the training batch, followed by those of the probe.
        failed: Called with the layer's label and the error for each measurement that cannot be
            finalized; that measurement is omitted.
    """
    by_key: dict[tuple[str, str], LayerMeasurement] = {}
    with contextlib.suppress(Exception):  # all together for speed; errors are reported below
        pending = _with_final_statistics(pending)
    for part in pending:
        key = (part.layer_call.label, part.kind)
        try:
            measured = part.to_host()
        except Exception as error:
            failed(part.layer_call.label, error)
            continue
        known = by_key.get(key)
        if known is not None:
            measured = replace(
                known,
                planes=measured.planes or known.planes,
                slices=measured.slices or known.slices,
                tokens=known.tokens if measured.tokens is None else measured.tokens,
            )
        by_key[key] = measured
    return tuple(sorted(by_key.values(), key=lambda measured: measured.layer_call.position))


def _with_final_statistics(pending: Sequence[PendingMeasurement]) -> list[PendingMeasurement]:
    """The measurements, with the statistics of all of them finalized together."""
    positions = list[int]()
    waiting = list[PendingStatistics]()
    for position, measurement in enumerate(pending):
        if isinstance(measurement.statistics, PendingStatistics):
            positions.append(position)
            waiting.append(measurement.statistics)
    result = list(pending)
    for position, numbers in zip(positions, finalize(waiting), strict=True):
        result[position] = result[position]._replace(statistics=numbers)
    return result


def _drawn_range(numbers: Statistics | None, channels: int) -> tuple[Floats, Floats] | None:
    """Min and max f64 [1, C] of a sample's drawn channels; None unless known to be all finite."""
    if numbers is None or numbers.nonfinite.any():
        return None
    return numbers.minimum[None, :channels], numbers.maximum[None, :channels]


def _wide(tensor: Tensor) -> Floats:
    """The values on the host as f32 or f64, waiting for the device."""
    on_host = tensor.cpu()
    return (on_host.float() if on_host.dtype in HALVES else on_host).numpy()
