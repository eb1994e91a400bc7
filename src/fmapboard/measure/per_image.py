"""One tensor of several images, reduced in one go to what each image would leave alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor, nn

from fmapboard.measure.channel_stats import PendingStatisticsPerSample, statistics_per_sample
from fmapboard.measure.reducer import PendingMaps, PendingMeasurement, Reducer, rounded
from fmapboard.measure.subsample import PendingSample, sample_of_each
from fmapboard.records import LayerCall, TensorKind
from fmapboard.render.quantize import Quantizer

MAX_BYTES = 8 * 2**20
"""Larger tensors leave the processor's cache between the first pass over them and the last; they
are read an image at a time."""


@dataclass(frozen=True, slots=True)
class PendingImages:
    """`reducer.PendingMeasurement` of several images, side by side.

    Attributes:
        shape: the tensor's, for one image.
        drawn: [N, C, H, W], all images.
        samples: values for the histograms [N, S].
        total: how many values an image has.
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
        """Everything that it holds."""
        yield from self.statistics.parts
        for pending in self.statistics.odd.values():
            yield from pending.parts
        if self.drawn is not None:
            yield self.drawn.maps
        if self.samples is not None:
            yield self.samples

    def split(self) -> list[PendingMeasurement]:
        """Each image's own, with its numbers worked out."""
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
    """Reduce a tensor [N, ...] of one image each; None where they are better reduced one by one.

    That is off the CPU, where every operation waits in line anyway, and where the tensor is large
    or does not lie in memory in the order of its axes. All images are drawn, whatever the
    reducer's ``samples``.
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
    assert reduce.quantize is not None  # made with the reducer
    total, shape = view.maps[0].numel(), (1, *tensor.shape[1:])
    return PendingImages(layer_call, kind, shape, reduce.quantize, kept, numbers, samples, total)
