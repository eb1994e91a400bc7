"""A captured tensor to the little that is kept of it.

On the training thread a tensor is read once for its numbers, and what is drawn of it is copied;
nothing that is kept aliases the live tensor, which the very next operation may overwrite. The rest
is finalized by `to_host`, in the worker thread. Call a reduction inside `isolation.aside`.
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
    """What is drawn of a tensor: a copy [N, C, H, W], f32 or f64, still on the device.

    ``channels`` is how many the tensor has in all, ``view`` how it was read as maps. ``counted``:
    the tensor's statistics are those of the very planes that are drawn.
    """

    maps: Tensor
    channels: int
    view: str
    counted: bool = False
    layout: Layout = "tiles"


@dataclass(frozen=True, slots=True)
class PendingMeasurement:
    """`records.LayerMeasurement` still on the device."""

    layer_call: LayerCall
    kind: TensorKind
    shape: tuple[int, ...]
    quantize: Quantizer
    drawn: PendingMaps | None = None
    statistics: PendingStatistics | Statistics | None = None
    sample: PendingSample | None = None

    def tensors(self) -> Iterator[Tensor]:
        """Everything that it holds."""
        if self.drawn is not None:
            yield self.drawn.maps
        if isinstance(self.statistics, PendingStatistics):
            yield from self.statistics.parts
        if self.sample is not None:
            yield self.sample.values

    def to_host(self) -> LayerMeasurement:
        """Wait for the device and work everything out; of one run in the order of its steps."""
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
    """The same with all their statistics worked out, which is quicker than one by one."""
    waiting = {
        n: s for n, p in enumerate(pending) if isinstance(s := p.statistics, PendingStatistics)
    }
    found = dict(zip(waiting, finalize(list(waiting.values())), strict=True))
    return [replace(p, statistics=found[n]) if n in found else p for n, p in enumerate(pending)]


def joined(
    pending: Sequence[PendingMeasurement], failed: Callable[[str, Exception], None]
) -> tuple[LayerMeasurement, ...]:
    """Everything measured, in the network's order; a probe's planes beside the live numbers.

    A layer that fails is told of, by its label, and left out.
    """
    by_key: dict[tuple[str, str], LayerMeasurement] = {}
    with contextlib.suppress(Exception):  # whose fault it is shows where each works out its own
        pending = with_numbers(pending)
    for part in pending:
        key = (part.layer_call.label, part.kind)
        try:
            measured, known = part.to_host(), by_key.get(key)
        except Exception as error:
            failed(part.layer_call.label, error)
            continue
        if known is not None and measured.planes is not None:
            measured = replace(known, planes=measured.planes)
        by_key[key] = measured
    return tuple(sorted(by_key.values(), key=lambda measured: measured.layer_call.position))


@dataclass(slots=True)
class Reducer:
    """Reduces captured tensors.

    Attributes:
        samples: how many samples are drawn; None draws all.
        max_channels: how many channels are drawn; None draws all.
        max_tile, scale, zero_centred: see `quantize.Quantizer`.
        channels_last_sequences, tokens_are_patches, tokens_are_rows: see `layout.axes_of` and
            `layout.as_maps`.
        depth: which depth slice of a volume is drawn; None draws the middle one.
        quantize: made of the options; `dataclasses.replace` hands it on, with its locked scales.
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
        """A reducer that reads the tensors of this model's layers as maps.

        In a model with 1-D convolutions three axes are [N, C, L], in any other [N, L, C], which is
        drawn as patches in a model that cuts up images, and as rows in one without convolutions.
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
        """Three axes are a batch of sequences, never one image [C, H, W]."""
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
        """Reduce one tensor: maps where ``pictures``, statistics and a sample where ``numbers``.

        A layer that is not drawn gets neither maps nor a sample for a histogram.
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
        assert self.quantize is not None  # made with the reducer
        return PendingMeasurement(
            layer_call, kind, tuple(tensor.shape), self.quantize, kept, counted, sampled
        )

    def view(self, tensor: Tensor, module: nn.Module) -> MapsView:
        """The tensor read as maps."""
        last = self.channels_last_sequences
        return self.read(tensor, axes_of(module, tensor.shape, channels_last_sequences=last))

    def read(self, tensor: Tensor, axes: Axes) -> MapsView:
        """A tensor whose axes are known read as maps."""
        patches, rows = self.tokens_are_patches, self.tokens_are_rows
        return as_maps(tensor, axes, tokens_are_patches=patches, tokens_are_rows=rows)

    def keep(self, view: MapsView, samples: int | None, *, each: bool = False) -> PendingMaps:
        """A copy of what is drawn of at most ``samples`` samples; None draws all.

        ``each``: statistics are of each sample alone.
        """
        maps = view.maps if view.patches is None else view.patches
        drawn, how, layout = as_pictures(maps[:samples, : self.max_channels], self.depth)
        copied = drawn.clone(memory_format=torch.contiguous_format)
        said = "; ".join(filter(None, [view.said, how]))
        whole = view.patches is None and maps.dim() == copied.dim()
        counted = whole and (each or len(maps) == 1)
        return PendingMaps(copied, maps.shape[1], said, counted, layout)


def _drawn_range(numbers: Statistics | None, channels: int) -> tuple[Floats, Floats] | None:
    """Extremes of the drawn channels of one sample, f64 [1, C]; None if a value is not finite."""
    if numbers is None or numbers.nonfinite.any():
        return None
    return numbers.minimum[None, :channels], numbers.maximum[None, :channels]


def _with_extremes(pending: PendingSample, numbers: Statistics | None) -> Sample:
    """The sample with the smallest and the largest finite value of all channels."""
    if numbers is None or np.isnan(numbers.minimum).all():
        return pending.to_host()
    return pending.to_host(float(np.nanmin(numbers.minimum)), float(np.nanmax(numbers.maximum)))


@lru_cache(maxsize=64)
def rounded(floor: float | None, dtype: torch.dtype) -> float | None:
    """An activation's floor as the type of its output has it: bfloat16 has no -1.758099."""
    if floor is None or not dtype.is_floating_point or math.isnan(floor):
        return floor
    return float(torch.tensor(floor, dtype=dtype, device="cpu"))
