"""Measurements of one tensor between the training thread and the worker thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from fmapboard.measure.device import HALVES
from fmapboard.measure.sample import PendingSample
from fmapboard.measure.statistics import PendingStatistics, finalize
from fmapboard.records import (
    ONE_PASS,
    Floats,
    LayerCall,
    LayerMeasurement,
    Layout,
    PassCount,
    Sample,
    Statistics,
    TensorKind,
)
from fmapboard.render.quantize import Averaged, Quantizer


@dataclass(frozen=True, slots=True)
class PendingMaps:
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
    extremes: tuple[Tensor, Tensor] | None = None

    def averaged(self) -> Averaged | None:
        """Wait for the device: how the maps were averaged on it, if they were."""
        if self.extremes is None:
            return None
        return Averaged(self.block, *(_wide(end).astype(np.float64) for end in self.extremes))


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
    passes: PassCount = ONE_PASS

    def to_host(self) -> LayerMeasurement:
        """Wait for the device, then finalize and quantize.

        Call it in step order, because later steps reuse the locked scales of earlier ones.
        """
        planes, drawn, numbers = None, self.drawn, self.statistics
        if isinstance(numbers, PendingStatistics):
            numbers = numbers.to_host()
        if drawn is not None:
            maps, key = _wide(drawn.maps), (self.layer_call.label, self.kind)
            known = _drawn_range(numbers, maps.shape[1]) if drawn.counted else None
            planes = self.quantize(
                key,
                maps,
                self.shape,
                drawn.channels,
                drawn.view,
                known,
                drawn.layout,
                drawn.averaged(),
            )
        sampled = None if self.sample is None else _with_extremes(self.sample, numbers)
        return LayerMeasurement(
            self.layer_call, self.kind, planes, numbers, sampled, self.shape, self.passes
        )


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


def _wide(tensor: Tensor) -> Floats:
    """The values on the host as f32 or f64, waiting for the device."""
    on_host = tensor.cpu()
    return (on_host.float() if on_host.dtype in HALVES else on_host).numpy()
