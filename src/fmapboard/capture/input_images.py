"""Copies of the images that the network receives, to be drawn next to its feature maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.measure.average_on_device import average
from fmapboard.model.tensors import is_observable, tensors
from fmapboard.records import InputImage, Normalization
from fmapboard.render.average import shrink

MAX_SIDE = 256
"""Larger input images are averaged down to at most this many px per side."""


@dataclass(frozen=True, slots=True)
class PendingInputImage:
    """``records.InputImage`` still on the device.

    Attributes:
        sample: index in the batch.
        values: f32 [C, H, W], a copy in the input's own size or, on an accelerator, averaged down.
        normalization: mean and standard deviation per channel, if known.
        block: side in px of the blocks that were averaged.
    """

    sample: int
    values: Tensor
    normalization: Normalization | None
    block: int = 1

    def to_host(self) -> InputImage:
        """Wait for the device, copy to the host and average down."""
        drawn, block = shrink(self.values.cpu().numpy(), MAX_SIDE)
        return InputImage(self.sample, drawn, self.normalization, self.block * block)


def input_images(
    arguments: Any, most: int | None, normalization: Normalization | None, *, sequences: bool
) -> list[PendingInputImage]:
    """Copies of the first images in a model's input; empty if no tensor in it holds images.

    Args:
        arguments: what the model was called with, nested in any way.
        most: how many samples to copy; None copies all.
        normalization: mean and standard deviation per channel, if known; ignored if the number of
            channels differs.
        sequences: the model takes [N, C, L], so a tensor with three axes is not an image [C, H, W].
    """
    batch = image_batch(arguments, sequences=sequences)
    if batch is None or most == 0:
        return []
    known = normalization is not None and len(normalization[0]) == batch.shape[1]
    with aside(batch.device.type):
        kept, block = _copied(batch[:most].detach())
    return [
        PendingInputImage(number, sample, normalization if known else None, block)
        for number, sample in enumerate(kept.unbind())
    ]


def image_batch(arguments: Any, *, sequences: bool) -> Tensor | None:
    """The first tensor in a model's input that holds images, [N, C, H, W], or None.

    For the arguments see ``input_images``.
    """
    batches = (
        _batch(tensor, may_be_alone=number == 0 and not sequences)
        for number, tensor in enumerate(tensors(arguments))
    )
    return next((found for found in batches if found is not None), None)


def _copied(images: Tensor) -> tuple[Tensor, int]:
    """A copy f32 [N, C, H, W], large images on an accelerator averaged, and the block's side."""
    if images.is_cpu or max(images.shape[2:]) <= MAX_SIDE:
        return images.to(torch.float32, copy=True), 1
    return average(images.to(torch.float32), MAX_SIDE)


def _batch(tensor: Tensor, *, may_be_alone: bool) -> Tensor | None:
    """The tensor as a batch of images [N, C, H, W] with C 1 or 3; None if it is something else.

    A tensor with three axes counts as one image only if it is the model's first argument.
    """
    if not is_observable(tensor) or tensor.is_complex() or tensor.dtype == torch.bool:
        return None
    batch = tensor[None] if tensor.dim() == 3 and may_be_alone else tensor
    return batch if batch.dim() == 4 and batch.shape[1] in (1, 3) else None
