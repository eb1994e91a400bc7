"""Finds constant and identical images in a batch, without making training wait for a device.

Whole images are compared. On the CPU the comparison is exact. On an accelerator, the values of each
image are added up, as integers, over the positions with the same remainder modulo two numbers
without a common factor; images for which all these sums agree are called identical. Images that
differ in one value, or in the position of something, have different sums.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.measure.thread_count import without_settling
from fmapboard.model.distributed import is_dtensor

MAX_IMAGES = 1024
"""At most this many images of a batch are compared, the first ones."""
_SAMPLE = 64
"""On the CPU, values of an image by which those that may be identical are found."""
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """What was found in a batch of images, in part still on its device.

    Attributes:
        size: number of images.
        constant: indices of constant images, if they are known.
        identical: pairs of identical images, if they are known.
        extremes: [N, C] each, smallest and largest value of each plane; None if the results are
            known.
        sums: [N, S] each, integers; see the module.
    """

    size: int
    constant: tuple[int, ...] | None = None
    identical: tuple[tuple[int, int], ...] | None = None
    extremes: tuple[Tensor, Tensor] | None = None
    sums: tuple[Tensor, ...] = ()

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield from self.extremes or ()
        yield from self.sums

    def to_host(self) -> tuple[tuple[int, ...] | None, tuple[tuple[int, int], ...] | None]:
        """Wait for the device: indices of constant images, and pairs of identical ones."""
        if self.extremes is None:
            return self.constant, self.identical
        low, high = self.extremes
        constant = tuple((low == high).all(1).nonzero().flatten().tolist())
        rows = np.concatenate([one.cpu().numpy().astype(np.int64) for one in self.sums], 1)
        return constant, _pairs([row.tobytes() for row in rows])


def compared(batch: Tensor) -> PendingBatch:
    """Compare the images of a batch with each other.

    Args:
        batch: [N, C, H, W], any dtype but complex.
    """
    size = len(batch)
    if size < 2 or is_dtensor(batch):
        return PendingBatch(size)
    images = batch[:MAX_IMAGES].detach()
    with aside(images.device.type):
        if images.is_cpu:
            return PendingBatch(size, *without_settling(partial(_on_cpu, images)))
        planes = _in_memory_order(images)
        dim = 1 if planes is not None and planes.shape[-1] == images.shape[1] else 2
        if planes is None:
            planes = images.contiguous().flatten(2)  # [N, C, P]
        low, high = torch.aminmax(planes, dim=dim)  # [N, C]
        flat = planes.flatten(1)
        return PendingBatch(size, extremes=(low, high), sums=_sums(flat))


def _in_memory_order(images: Tensor) -> Tensor | None:
    """A view [N, C, P] of contiguous or [N, P, C] of channels-last images; None of others."""
    if images.is_contiguous():
        return images.flatten(2)
    if images.is_contiguous(memory_format=torch.channels_last):
        return images.permute(0, 2, 3, 1).flatten(1, 2)
    return None


def _sums(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of [N, P] over positions with the same remainder, [N, k] and [N, k + 1].

    The first leaves out the last P % k values, the second the first P % (k + 1).
    """
    whole = _INTEGERS.get(flat.element_size())
    bits = flat if whole is None else flat.view(whole)
    size = flat.shape[1]
    k = max(1, math.isqrt(size))
    wide = torch.int64 if flat.element_size() == 8 else torch.int32
    first = bits[:, : size // k * k].view(len(bits), -1, k)
    rest = size // (k + 1) * (k + 1)
    second = bits[:, size - rest :].view(len(bits), -1, k + 1)
    return first.sum(1, dtype=wide), second.sum(1, dtype=wide)


def _on_cpu(images: Tensor) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Constant and identical images on the CPU.

    Images that differ on a grid of at most 8 by 8 pixels are not compared any further.
    """
    down, across = (-(-side // 8) for side in images.shape[2:])
    grid = images[:, :, ::down, ::across].double().numpy()
    likely = np.flatnonzero((grid == grid[:, :, :1, :1]).all((1, 2, 3))).tolist()
    constant = tuple(n for n in likely if bool((images[n] == images[n, :, :1, :1]).all()))
    rows = grid.reshape(len(grid), -1)
    rows = np.ascontiguousarray(rows[:, :: -(-rows.shape[1] // _SAMPLE)])
    alike: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, values in enumerate(rows):
        alike[values.tobytes()].append(number)
    return constant, tuple(sorted(_identical(images, alike.values())))


def _identical(images: Tensor, alike: Iterable[list[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of identical images: the first of its kind, and each other one.

    Args:
        images: [N, C, H, W], on the CPU.
        alike: indices of images that agree where they were sampled.
    """
    for members in alike:
        kinds: list[int] = []
        for number in members:
            same = next((k for k in kinds if torch.equal(images[k], images[number])), None)
            if same is None:
                kinds.append(number)
            else:
                yield same, number
            if len(kinds) > _SAMPLE:  # all alike where they are sampled: no longer cheap
                break


def _pairs(keys: list[bytes]) -> tuple[tuple[int, int], ...]:
    firsts: dict[bytes, int] = {}
    pairs = ((firsts.setdefault(key, number), number) for number, key in enumerate(keys))
    return tuple((first, number) for first, number in pairs if first != number)
