"""Copies of the images that go into the network, to be drawn beside its feature maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.model.tensors import is_observable, tensors
from fmapboard.records import InputImage, Normalization
from fmapboard.render.average import shrink

MAX_SIDE = 256
"""An input image is averaged down to this many px per side."""


@dataclass(frozen=True, slots=True)
class PendingInputImage:
    """`records.InputImage` still on the device: f32 [C, H, W], a copy in the input's size."""

    sample: int
    values: Tensor
    normalization: Normalization | None

    def to_host(self) -> InputImage:
        """Wait for the device and average down."""
        drawn, block = shrink(self.values.cpu().numpy(), MAX_SIDE)
        return InputImage(self.sample, drawn, self.normalization, block)


def input_images(
    arguments: Any, most: int | None, normalization: Normalization | None, *, sequences: bool
) -> list[PendingInputImage]:
    """The first images of a model's input; empty where no tensor in it holds images.

    Args:
        arguments: what the model was called with, nested in any way.
        most: how many samples are copied; None copies all.
        normalization: mean and standard deviation per channel, where they are known.
        sequences: the model works on [N, C, L], so three axes are no image [C, H, W].
    """
    batches = (
        _batch(tensor, may_be_alone=number == 0 and not sequences)
        for number, tensor in enumerate(tensors(arguments))
    )
    batch = next((found for found in batches if found is not None), None)
    if batch is None or most == 0:
        return []
    known = normalization is not None and len(normalization[0]) == batch.shape[1]
    with aside(batch.device.type):
        kept = batch[:most].detach().to(torch.float32, copy=True)
    return [
        PendingInputImage(number, sample, normalization if known else None)
        for number, sample in enumerate(kept.unbind())
    ]


def _batch(tensor: Tensor, *, may_be_alone: bool) -> Tensor | None:
    """The tensor as a batch of images [N, C, H, W], C 1 or 3; None if it is something else.

    Of three axes, it is one image only where that is likely: in the first place.
    """
    if not is_observable(tensor) or tensor.is_complex() or tensor.dtype == torch.bool:
        return None
    batch = tensor[None] if tensor.dim() == 3 and may_be_alone else tensor
    return batch if batch.dim() == 4 and batch.shape[1] in (1, 3) else None
