"""Input images of a batch: copies of those that are drawn, and which are constant or identical.

Neither makes training wait for a device. Whole images are compared. On the CPU the comparison is
exact. On an accelerator, the values of each image are added up, as integers, over the positions
with the same remainder modulo two numbers without a common factor; images for which all these sums
agree are called identical. Images that differ in one value, or in the position of something, have
different sums.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.isolation import aside
from fmapboard.measure.layout import as_pictures
from fmapboard.measure.reducer import average
from fmapboard.model.distributed import PLAIN, is_dtensor
from fmapboard.model.tensors import as_bytes, is_observable, tensors
from fmapboard.records import InputImage, Normalization
from fmapboard.render.quantize import shrink

MAX_SIDE = 256
"""Larger input images are averaged down to at most this many px per side."""

MAX_IMAGES = 1024
"""At most this many images of a batch are compared, the first ones."""

_SAMPLE = 64
"""On the CPU, values of an image by which those that may be identical are found."""

_GRID = 8
"""On the CPU, px per side of a grid: images that differ there are not compared any further."""

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


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
        values = self.values.cpu().numpy()
        drawn, block = shrink(values, MAX_SIDE)
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
    channels = batch.shape[1]
    if normalization is not None and len(normalization[0]) != channels:
        normalization = None
    block = 1
    with aside(batch.device.type):
        kept = batch[:most].detach()  # [S, C, H, W]
        is_small = max(kept.shape[2:]) <= MAX_SIDE
        if kept.is_cpu or is_small:
            kept = kept.to(torch.float32, copy=True)
        else:
            wide = kept.to(torch.float32)
            kept, block = average(wide, MAX_SIDE)
    images = []
    for sample, values in enumerate(kept.unbind()):
        image = PendingInputImage(sample, values, normalization, block)
        images.append(image)
    return images


def image_batch(arguments: Any, *, sequences: bool, depth: int | None = None) -> Tensor | None:
    """The first tensor in a model's input that holds images, [N, C, H, W], or None.

    Of volumes, [N, C, D, H, W], it is one slice. For the arguments see ``input_images``.
    """
    given = tensors(arguments)
    axes = [tensor.dim() for tensor in given]
    is_list = axes[:2] == [3, 3]  # as of detectors
    may_be_alone = axes[:1] == [3] and not is_list and not sequences
    for number, tensor in enumerate(given):
        if not is_observable(tensor):
            continue
        if tensor.is_complex() or tensor.dtype == torch.bool:
            continue
        batch = tensor
        if number == 0 and may_be_alone:
            batch = tensor[None]  # [1, C, H, W]
        if batch.dim() not in (4, 5):
            continue
        channels = batch.shape[1]
        if channels in (1, 3):
            pictures, _, _ = as_pictures(batch, depth)
            return pictures
    return None


class Compared(NamedTuple):
    """What is known of a batch of images.

    Attributes:
        constant: indices of constant images, if they are known.
        identical: pairs of identical images, if they are known.
        digest: equal for equal images in any order, if it is known.
    """

    constant: tuple[int, ...] | None = None
    identical: tuple[tuple[int, int], ...] | None = None
    digest: str | None = None


class PendingBatch(NamedTuple):
    """What was found in a batch of images, in part still on its device.

    Attributes:
        size: number of images.
        known: what the CPU has found; nothing if the batch is on an accelerator, or not compared.
        extremes: [N, C] each, smallest and largest value of each plane; None if ``known`` is all.
        sums: [N, S] each, integers; see the module.
    """

    size: int
    known: Compared = Compared()
    extremes: tuple[Tensor, Tensor] | None = None
    sums: tuple[Tensor, ...] = ()

    def to_host(self) -> Compared:
        """Wait for the device."""
        if self.extremes is None:
            return self.known
        low, high = self.extremes
        is_constant = (low == high).all(1)  # [N]
        constant = is_constant.nonzero().flatten().tolist()
        sums = [part.cpu().numpy() for part in self.sums]
        rows = np.concatenate(sums, axis=1, dtype=np.int64)
        keys = [row.tobytes() for row in rows]
        return _compared_by(keys, constant)


def compared(batch: Tensor) -> PendingBatch:
    """Compare the images of a batch with each other.

    Args:
        batch: [N, C, H, W], any dtype but complex.
    """
    size = len(batch)
    if size < 2 or (type(batch) not in PLAIN and is_dtensor(batch)):
        return PendingBatch(size)
    images = batch[:MAX_IMAGES].detach()
    with aside(images.device.type):
        if images.is_cpu:
            return PendingBatch(size, _on_cpu(images))
        is_last = images.is_contiguous(memory_format=torch.channels_last)
        if is_last and not images.is_contiguous():
            planes = images.permute(0, 2, 3, 1).flatten(1, 2)  # [N, P, C], a view
            low, high = torch.aminmax(planes, dim=1)  # [N, C]
        else:
            planes = images.contiguous().flatten(2)  # [N, C, P]
            low, high = torch.aminmax(planes, dim=2)  # [N, C]
        sums = _sums(planes.flatten(1))
        return PendingBatch(size, extremes=(low, high), sums=sums)


def _sums(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of [N, P] over positions with the same remainder, [N, k] and [N, k + 1].

    The first leaves out the last P % k values, the second the first P % (k + 1).
    """
    nbytes = flat.element_size()
    bits = flat
    if nbytes in _INTEGERS:
        bits = flat.view(_INTEGERS[nbytes])
    wide = torch.int64 if nbytes == 8 else torch.int32
    count, size = flat.shape
    k = max(1, math.isqrt(size))
    skipped = size % k
    head = bits[:, : size - skipped].view(count, -1, k)
    skipped = size % (k + 1)
    tail = bits[:, skipped:].view(count, -1, k + 1)
    by_k = head.sum(1, dtype=wide)
    by_next = tail.sum(1, dtype=wide)
    return by_k, by_next


def _on_cpu(images: Tensor) -> Compared:
    """Constant and identical images on the CPU."""
    height, width = images.shape[2:]
    down = ceil_div(height, _GRID)
    across = ceil_div(width, _GRID)
    points = images[:, :, ::down, ::across]
    grid = points.double().numpy()
    first = grid[:, :, :1, :1]
    is_likely = (grid == first).all((1, 2, 3))  # [N]
    constant = []
    for number in np.flatnonzero(is_likely).tolist():
        image = images[number]
        corner = image[:, :1, :1]
        is_constant = (image == corner).all()
        if bool(is_constant):
            constant.append(number)
    rows = grid.reshape(len(grid), -1)
    keys = _keys(images, rows)
    found = _compared_by(keys, constant)
    in_order = sorted(found.identical or ())
    return found._replace(identical=tuple(in_order))


def _keys(images: Tensor, rows: npt.NDArray[np.float64]) -> list[bytes]:
    """Bytes that are equal for equal images: some values, or a hash where these occur twice."""
    stride = ceil_div(rows.shape[1], _SAMPLE)
    keys = [row.tobytes() for row in rows[:, ::stride]]
    counts = Counter(keys)
    for number, sample in enumerate(keys):
        if counts[sample] > 1:
            values = as_bytes(images[number]).numpy()
            keys[number] = hashlib.blake2b(values.data).digest()
    return keys


def _compared_by(keys: list[bytes], constant: list[int]) -> Compared:
    """What is known of images by keys that are equal for equal images."""
    firsts: dict[bytes, int] = {}
    pairs = []
    for number, key in enumerate(keys):
        first = firsts.setdefault(key, number)
        if first != number:
            pairs.append((first, number))
    joined = b"".join(sorted(keys))
    digest = hashlib.blake2b(joined, digest_size=8)
    return Compared(tuple(constant), tuple(pairs), digest.hexdigest())
