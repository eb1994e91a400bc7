"""Reduce a captured tensor to statistics, a histogram sample and a copy of what is drawn.

On the training thread, ``Reducer`` computes the sums that the statistics need and copies the
histogram sample and the part that is drawn. Nothing that is kept aliases the live tensor, which the
next operation may overwrite. ``to_host`` does the rest in the worker thread. Call a ``Reducer``
inside ``isolation.aside``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from fmapboard.measure.channel_stats import PendingStatistics, finalize, statistics
from fmapboard.measure.layout import (
    Axes,
    MapsView,
    as_maps,
    as_pictures,
    axes_of,
    has_no_convolution,
    may_hold_patches,
)
from fmapboard.measure.subsample import PendingSample, sample
from fmapboard.model.activations import is_bounded
from fmapboard.model.layers import CONVOLUTIONS_1D
from fmapboard.records import (
    Floats,
    LayerCall,
    LayerMeasurement,
    Layout,
    Sample,
    Scale,
    Statistics,
    TensorKind,
)
from fmapboard.render.quantize import Quantizer


@dataclass(frozen=True, slots=True)
class PendingMaps:
    """The part of a tensor that is drawn: a copy that is still on the device.

    Attributes:
        maps: [N, C, H, W], f32 or f64.
        channels: Number of channels of the whole tensor.
        view: How the tensor was converted to maps; empty for plain [N, C, H, W].
        counted: True if each channel's statistics cover exactly its drawn plane, so that their
            extremes can be used as the drawn range.
        layout: ``"rows"`` for sequences, otherwise ``"tiles"``.
    """

    maps: Tensor
    channels: int
    view: str
    counted: bool = False
    layout: Layout = "tiles"


@dataclass(frozen=True, slots=True)
class PendingMeasurement:
    """A ``records.LayerMeasurement`` whose parts are still on the device."""

    layer_call: LayerCall
    kind: TensorKind
    shape: tuple[int, ...]
    quantize: Quantizer
    drawn: PendingMaps | None = None
    statistics: PendingStatistics | Statistics | None = None
    sample: PendingSample | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        if self.drawn is not None:
            yield self.drawn.maps
        if isinstance(self.statistics, PendingStatistics):
            yield from self.statistics.parts
        if self.sample is not None:
            yield self.sample.values

    def to_host(self) -> LayerMeasurement:
        """Wait for the device, then finalize and quantize.

        Call it in step order, because later steps reuse the locked scales of earlier ones.
        """
        planes, drawn, numbers = None, self.drawn, self.statistics
        if isinstance(numbers, PendingStatistics):
            numbers = numbers.to_host()
        if drawn is not None:
            maps, key = drawn.maps.cpu().numpy(), (self.layer_call.label, self.kind)
            known = _drawn_range(numbers, maps.shape[1]) if drawn.counted else None
            planes = self.quantize(
                key, maps, self.shape, drawn.channels, drawn.view, known, drawn.layout
            )
        sampled = None if self.sample is None else _with_extremes(self.sample, numbers)
        return LayerMeasurement(self.layer_call, self.kind, planes, numbers, sampled, self.shape)


def with_numbers(pending: Sequence[PendingMeasurement]) -> list[PendingMeasurement]:
    """The same measurements, with all statistics finalized together for speed."""
    waiting = {
        n: s for n, p in enumerate(pending) if isinstance(s := p.statistics, PendingStatistics)
    }
    found = dict(zip(waiting, finalize(list(waiting.values())), strict=True))
    return [replace(p, statistics=found[n]) if n in found else p for n, p in enumerate(pending)]


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
    with contextlib.suppress(Exception):  # reported per measurement below
        pending = with_numbers(pending)
    for part in pending:
        key = (part.layer_call.label, part.kind)
        try:
            measured, known = part.to_host(), by_key.get(key)
        except Exception as error:
            failed(part.layer_call.label, error)
            continue
        if known is not None:
            measured = replace(known, planes=measured.planes or known.planes)
        by_key[key] = measured
    return tuple(sorted(by_key.values(), key=lambda measured: measured.layer_call.position))


@dataclass(slots=True)
class Reducer:
    """Reduces captured tensors to measurements.

    Attributes:
        samples: Maximum number of samples that are drawn; None draws all.
        max_channels: Maximum number of channels that are drawn; None draws all.
        max_tile: As in ``quantize.Quantizer``.
        scale: As in ``quantize.Quantizer``.
        zero_centered: As in ``quantize.Quantizer``.
        channels_last_sequences: As in ``layout.axes_of``.
        tokens_are_patches: As in ``layout.as_maps``.
        tokens_are_rows: As in ``layout.as_maps``.
        depth: Which depth slice of a volume is drawn; None draws the middle one.
        quantize: Quantizer of the run, built from the options above. ``dataclasses.replace`` passes
            it on, including its locked scales.
    """

    samples: int | None = 1
    max_channels: int | None = 64
    max_tile: int | None = 64
    scale: Scale = "channel"
    zero_centered: bool = False
    channels_last_sequences: bool = True
    tokens_are_patches: bool = False
    tokens_are_rows: bool = False
    depth: int | None = None
    quantize: Quantizer | None = field(default=None, repr=False)

    @classmethod
    def for_model(
        cls,
        model: nn.Module,
        *,
        samples: int | None = 1,
        max_channels: int | None = 64,
        max_tile: int | None = 64,
        scale: Scale = "channel",
        colormap: str = "grey",
        depth: int | None = None,
    ) -> Reducer:
        """Create a reducer that interprets sequences as this model does.

        Unless its layer determines the axes (see ``layout.axes_of``), a tensor with three axes is
        [N, C, L] if the model has 1-D convolutions, otherwise tokens [N, L, C]. Tokens are drawn as
        patches if ``layout.may_hold_patches`` is true, as rows if the model has no convolution.
        """
        modules = list(model.modules())
        return cls(
            samples,
            max_channels,
            max_tile,
            scale,
            zero_centered=colormap == "signed",
            channels_last_sequences=not any(isinstance(m, CONVOLUTIONS_1D) for m in modules),
            tokens_are_patches=may_hold_patches(model),
            tokens_are_rows=has_no_convolution(model),
            depth=depth,
        )

    @property
    def has_sequences(self) -> bool:
        """True if a tensor with three axes holds sequences, not an unbatched image [C, H, W]."""
        return self.tokens_are_rows or not self.channels_last_sequences

    def __post_init__(self) -> None:
        if self.quantize is None:
            self.quantize = Quantizer(self.max_tile, self.scale, self.zero_centered)

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
        view = self.view(tensor, module)
        counted = kept = sampled = None
        if numbers:
            counted = statistics(
                view.maps,
                rounded(layer_call.floor, tensor.dtype),
                moments=layer_call.pictures,
                bounded=layer_call.floor is not None and is_bounded(module),
            )
        if counted is not None and layer_call.pictures:
            sampled = sample(view.maps)
        if pictures and layer_call.pictures and view.drawable:
            kept = self.keep(view, self.samples)
        assert self.quantize is not None  # set in __post_init__
        return PendingMeasurement(
            layer_call, kind, tuple(tensor.shape), self.quantize, kept, counted, sampled
        )

    def view(self, tensor: Tensor, module: nn.Module) -> MapsView:
        """Interpret a tensor as maps."""
        last = self.channels_last_sequences
        return self.read(tensor, axes_of(module, tensor.shape, channels_last_sequences=last))

    def read(self, tensor: Tensor, axes: Axes) -> MapsView:
        """Interpret a tensor with known axes as maps."""
        patches, rows = self.tokens_are_patches, self.tokens_are_rows
        return as_maps(tensor, axes, tokens_are_patches=patches, tokens_are_rows=rows)

    def keep(self, view: MapsView, samples: int | None, *, each: bool = False) -> PendingMaps:
        """Copy the part of a tensor that is drawn.

        Args:
            view: The tensor as maps.
            samples: Maximum number of samples to copy; None copies all.
            each: The statistics are computed per sample, so they cover each drawn plane exactly.
        """
        maps = view.maps if view.patches is None else view.patches
        drawn, how, layout = as_pictures(maps[:samples, : self.max_channels], self.depth)
        copied = drawn.clone(memory_format=torch.contiguous_format)
        notes = "; ".join(filter(None, [view.note, how]))
        whole = view.patches is None and maps.dim() == copied.dim()
        counted = whole and (each or len(maps) == 1)
        return PendingMaps(copied, maps.shape[1], notes, counted, layout)


def _drawn_range(numbers: Statistics | None, channels: int) -> tuple[Floats, Floats] | None:
    """Min and max f64 [1, C] of a sample's drawn channels; None unless known to be all finite."""
    if numbers is None or numbers.nonfinite.any():
        return None
    return numbers.minimum[None, :channels], numbers.maximum[None, :channels]


def _with_extremes(pending: PendingSample, numbers: Statistics | None) -> Sample:
    """Copy a sample to the host and add the finite extremes of the whole tensor, if known."""
    if numbers is None or np.isnan(numbers.minimum).all():
        return pending.to_host()
    return pending.to_host(float(np.nanmin(numbers.minimum)), float(np.nanmax(numbers.maximum)))


@lru_cache(maxsize=64)
def rounded(floor: float | None, dtype: torch.dtype) -> float | None:
    """An activation's ``floor`` rounded to the dtype of its output, which may be bfloat16."""
    if floor is None or not dtype.is_floating_point or math.isnan(floor):
        return floor
    return float(torch.tensor(floor, dtype=dtype, device="cpu"))
