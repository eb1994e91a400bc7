"""Reduce a batch in one pass, keeping each image as if it had been run alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor, nn

from fmapboard.measure.channel_stats import statistics_per_sample
from fmapboard.measure.pending import PendingMaps, PendingMeasurement
from fmapboard.measure.pending_stats import PendingStatisticsPerSample
from fmapboard.measure.reducer import Reducer, rounded
from fmapboard.measure.subsample import PendingSample, sample_of_each
from fmapboard.records import LayerCall, TensorKind
from fmapboard.render.quantize import Quantizer

MAX_BYTES = 8 * 2**20
"""Larger tensors, which do not stay in the CPU cache, are reduced one image at a time."""


@dataclass(frozen=True, slots=True)
class PendingImages:
    """Measurements of several images, still batched (see ``reducer.PendingMeasurement``).

    Attributes:
        layer_call: The layer call that was measured.
        kind: Which tensor of the layer call.
        shape: Shape of the tensor for one image, [1, ...].
        quantize: Quantizer of the run.
        drawn: Copy [N, C, H, W] of what is drawn, all images.
        statistics: Statistics of each image.
        samples: Values for the histograms, [N, S].
        total: Number of values per image.
    """

    layer_call: LayerCall
    kind: TensorKind
    shape: tuple[int, ...]
    quantize: Quantizer
    drawn: PendingMaps | None
    statistics: PendingStatisticsPerSample
    samples: Tensor | None
    total: int

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield from self.statistics.parts
        for pending in self.statistics.fallbacks.values():
            yield from pending.parts
        if self.drawn is not None:
            yield self.drawn.maps
        if self.samples is not None:
            yield self.samples

    def split(self) -> list[PendingMeasurement]:
        """One measurement per image, with its statistics finalized."""
        drawn, samples = self.drawn, self.samples
        return [
            PendingMeasurement(
                self.layer_call,
                self.kind,
                self.shape,
                self.quantize,
                None if drawn is None else replace(drawn, maps=drawn.maps[n : n + 1]),
                numbers,
                None if samples is None else PendingSample(samples[n], self.total),
            )
            for n, numbers in enumerate(self.statistics.to_host())
        ]


def reduce_images(
    reduce: Reducer, layer_call: LayerCall, kind: TensorKind, tensor: Tensor, module: nn.Module
) -> PendingImages | None:
    """Reduce a tensor [N, ...] that has one entry per image; None if reducing one by one is better.

    That is the case off the CPU (where operations are queued anyway), for tensors above
    ``MAX_BYTES``, and for non-contiguous tensors. All images are drawn, regardless of the reducer's
    ``samples``.
    """
    if not tensor.is_cpu or tensor.nbytes > MAX_BYTES:
        return None
    view = reduce.view(tensor, module)
    if len(view.maps) != len(tensor) or not view.maps.is_contiguous():
        return None
    numbers = statistics_per_sample(
        view.maps, rounded(layer_call.floor, tensor.dtype), moments=layer_call.pictures
    )
    kept = samples = None
    if layer_call.pictures:
        samples = sample_of_each(view.maps)
        if view.drawable:
            kept = reduce.keep(view, None, each=True)
    assert reduce.quantize is not None  # set in Reducer.__post_init__
    total, shape = view.maps[0].numel(), (1, *tensor.shape[1:])
    return PendingImages(layer_call, kind, shape, reduce.quantize, kept, numbers, samples, total)
