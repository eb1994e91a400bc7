"""The attributions of a logged step on their way from the device to the worker thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from fmapboard.capture.input_images import PendingInputImage
from fmapboard.capture.loss_scale import Factor
from fmapboard.records import Attribution, InputImage, LayerCall, PassCount


@dataclass(frozen=True, slots=True)
class PendingAttribution:
    """The attribution of the drawn samples at one layer call, still on the device.

    Attributes:
        layer_call: the layer call.
        negative: f32 [S, H, W], the negative of the heat map of the scaled loss.
        norms: f32 [S], norms of the gradients of the scaled loss.
        batch: number of samples in the batch.
        tokens: the layer returns tokens.
        passes: the backward passes that the gradient is the sum of.
    """

    layer_call: LayerCall
    negative: Tensor
    norms: Tensor
    batch: int
    tokens: bool
    passes: PassCount


@dataclass(frozen=True, slots=True)
class PendingAttributions:
    """The attributions of a logged step.

    Attributes:
        parts: one per layer call.
        scale: factor by which a GradScaler scaled the loss.
        images: the input images, unless they are those that the step draws.
        of_probe: the loss is ``attribution_loss`` on the probe.
    """

    parts: tuple[PendingAttribution, ...] = ()
    scale: Factor | None = None
    images: tuple[PendingInputImage, ...] = ()
    of_probe: bool = False

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        for part in self.parts:
            yield from (part.negative, part.norms)
        if isinstance(self.scale, Tensor):
            yield self.scale
        yield from (image.values for image in self.images)

    def to_host(self, drawn: tuple[InputImage, ...]) -> tuple[Attribution, ...]:
        """Wait for the device and divide out the loss scale.

        Args:
            drawn: the input images that the step draws, used unless ``images`` has others.
        """
        images = tuple(image.to_host() for image in self.images) or drawn
        of_sample = {image.sample: image for image in images}
        scale = 1.0 if self.scale is None else float(self.scale)
        return tuple(
            Attribution(
                part.layer_call,
                sample,
                part.negative[sample].cpu().numpy() / -scale,
                float(part.norms[sample]) / scale,
                part.batch,
                of_sample.get(sample),
                part.tokens,
                of_probe=self.of_probe,
                passes=part.passes,
            )
            for part in self.parts
            for sample in range(len(part.norms))
        )


NO_ATTRIBUTIONS = PendingAttributions()
