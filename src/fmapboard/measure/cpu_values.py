"""Memory on the CPU for what is read of several tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fmapboard.measure.spare_memory import SpareMemory


class CpuValues:
    """What is read of several tensors of one dtype.

    Args:
        views: what is read of each tensor.
        memory: where the memory comes from.

    Attributes:
        all: all values [S].
        parts: the values of each tensor, in the shape in which they are read.
    """

    def __init__(self, views: Sequence[Tensor], memory: SpareMemory) -> None:
        sizes = [view.numel() for view in views]
        self.all = memory.take((sum(sizes),), views[0].dtype)
        own = zip(self.all.split_with_sizes(sizes), views, strict=True)
        self.parts = [part.view(view.shape) for part, view in own]
        self._bytes = in_bytes(self.parts)

    def read(self, views: list[Tensor]) -> None:
        """Copy the values as they are now, seen as bytes."""
        torch._foreach_copy_(self._bytes, views)


def in_bytes(views: Sequence[Tensor]) -> list[Tensor]:
    """Views of the bytes: torch copies 32,769 values and more on several threads, of any size."""
    return [view.view(torch.uint8) for view in views]
