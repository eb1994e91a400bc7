"""What the network sees: copies of the input images of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.measure.layout import as_pictures
from fmapboard.measure.reducer import average
from fmapboard.model.tensors import is_observable, tensors
from fmapboard.records import InputImage, Normalization
from fmapboard.render.quantize import shrink

MAX_SIDE = 256
"""Larger input images are averaged down to at most this many px per side."""


class PendingInputImage(NamedTuple):
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
    arguments: Any,
    most: int | None,
    normalization: Normalization | None,
    *,
    sequences: bool,
    depth: int | None = None,
) -> list[PendingInputImage]:
    """Copies of the first images in a model's input; empty if no tensor in it holds images.

    Args:
        arguments: what the model was called with, nested in any way.
        most: how many samples to copy; None copies all.
        normalization: mean and standard deviation per channel, if known; ignored if the number of
            channels differs.
        sequences: the model takes [N, C, L], so a tensor with three axes is not an image [C, H, W].
        depth: which slice of volumes; None for the middle one.
    """
    batch = image_batch(arguments, sequences=sequences, depth=depth)
    if batch is None or most == 0:
        return []
    known = normalization is not None and len(normalization[0]) == batch.shape[1]
    undone = normalization if known else None
    block = 1
    with aside(batch.device.type):
        kept = batch[:most].detach()  # [S, C, H, W]
        if kept.is_cpu or max(kept.shape[2:]) <= MAX_SIDE:
            kept = kept.to(torch.float32, copy=True)
        else:
            kept, block = average(kept.to(torch.float32), MAX_SIDE)
    return [
        PendingInputImage(sample, image, undone, block)
        for sample, image in enumerate(kept.unbind())
    ]


def image_batch(arguments: Any, *, sequences: bool, depth: int | None = None) -> Tensor | None:
    """The first tensor in a model's input that holds images, [N, C, H, W], or None.

    Of volumes, [N, C, D, H, W], it is one slice. For the arguments see ``input_images``.
    """
    given = tensors(arguments)
    is_list = [tensor.dim() for tensor in given[:2]] == [3, 3]  # as of detectors
    for number, tensor in enumerate(given):
        if not is_observable(tensor) or tensor.is_complex() or tensor.dtype == torch.bool:
            continue
        is_alone = tensor.dim() == 3 and number == 0 and not sequences and not is_list
        batch = tensor[None] if is_alone else tensor
        if batch.dim() in (4, 5) and batch.shape[1] in (1, 3):
            return as_pictures(batch, depth)[0]
    return None
