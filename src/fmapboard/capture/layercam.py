"""LayerCAM of the loss: ``relu(-dL/dA) * A`` summed over channels, on the activation's device.

P.-T. Jiang, C.-B. Zhang, Q. Hou, M.-M. Cheng, Y. Wei: LayerCAM: Exploring Hierarchical Class
Activation Maps for Localization (2021), equations 4 to 6, with the negative gradient of the loss in
place of the gradient of a class score.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.capture.inputs import PendingInputImage
from fmapboard.measure.norms import Factor
from fmapboard.records import Attribution, InputImage, LayerCall, PassCount

_SAMPLE_AXES = (1, 2, 3)


def heat(gradient: Tensor, activation: Tensor) -> tuple[Tensor, Tensor]:
    """Attribution and gradient norm of each sample, without waiting for the device.

    Args:
        gradient: [S, C, H, W], dL/dA.
        activation: [S, C, H, W].

    Returns:
        The negative of the heat map f32 [S, H, W], and the 2-norms of the gradients f32 [S].
    """
    wide = gradient.to(torch.float32)
    norms = torch.linalg.vector_norm(wide, dim=_SAMPLE_AXES)  # [S]
    product = wide.clamp(max=0).mul_(activation)  # [S, C, H, W]
    return product.sum(1), norms


class PendingAttribution(NamedTuple):
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


class PendingAttributions(NamedTuple):
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

    def to_host(self, drawn: tuple[InputImage, ...]) -> tuple[Attribution, ...]:
        """Wait for the device and divide out the loss scale.

        Args:
            drawn: the input images that the step draws, used unless ``images`` has others.
        """
        images = tuple(image.to_host() for image in self.images) or drawn
        of_sample = {image.sample: image for image in images}
        scale = 1.0 if self.scale is None else float(self.scale)
        found = list[Attribution]()
        for part in self.parts:
            for sample, norm in enumerate(part.norms.tolist()):
                attribution = Attribution(
                    layer_call=part.layer_call,
                    sample=sample,
                    heat=part.negative[sample].cpu().numpy() / -scale,
                    gradient=norm / scale,
                    batch=part.batch,
                    image=of_sample.get(sample),
                    tokens=part.tokens,
                    of_probe=self.of_probe,
                    passes=part.passes,
                )
                found.append(attribution)
        return tuple(found)
