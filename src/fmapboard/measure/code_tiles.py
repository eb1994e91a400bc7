"""Quantize what is drawn on an accelerator: many planes of one size with few launches.

``coded`` computes what ``render.codes`` describes, in float32 and in the worker's order of
operations. NaN and infinite values are found and marked without waiting for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.measure.device_stats import HALVES
from fmapboard.render.codes import MARKS

_LAUNCHES_PER_CALL, _FOR_SEVERAL_GROUPS, _FOR_CENTERED = 12, 3, 3
_LAUNCHES_PER_GROUP = 10
_TENSORS_PER_CAT = 128  # CUDA concatenates up to this many contiguous tensors in one launch
NUMBERS = 3
"""Float32 numbers per plane that are sent with the codes."""


class Codes(NamedTuple):
    """Coded planes on their device.

    Attributes:
        codes: u8 [P, S].
        limits: f32 [P, 3]: smallest and largest finite value, and 3 for a plane coded with marks,
            else 0.
    """

    codes: Tensor
    limits: Tensor


def launches(groups: Sequence[Sequence[Tensor]], *, zero_centered: bool) -> int:
    """How many kernels CUDA launches for ``coded`` of ``joined`` groups of tiles."""
    count = _LAUNCHES_PER_CALL + _FOR_SEVERAL_GROUPS * (len(groups) > 1)
    count += _FOR_CENTERED * zero_centered
    for tiles in groups:
        count += _LAUNCHES_PER_GROUP + -(-len(tiles) // _TENSORS_PER_CAT)
        count += tiles[0].dtype in HALVES
    return count


def joined(tiles: Sequence[Tensor]) -> Tensor:
    """Tiles [N, C, H, W] of one size and dtype, on one accelerator, as rows f32 [P, H * W]."""
    rows = torch.cat([tile.view(-1, tile.shape[2] * tile.shape[3]) for tile in tiles])
    return rows.float() if rows.dtype in HALVES else rows


def coded(
    groups: Sequence[Tensor], *, zero_centered: bool, done: Callable[[int, Codes], object]
) -> None:
    """Code groups of planes.

    Args:
        groups: Rows f32 [P, S] of S > 1 values, one per plane; not changed.
        zero_centered: As in ``Quantizer``.
        done: Called with the index of each group and its codes, in order.
    """
    extremes = [_extremes(rows) for rows in groups]
    lo, hi, total = (_as_one(parts) for parts in zip(*extremes, strict=True))
    offset = (total - total).nan_to_num_(nan=float(len(MARKS)))  # inf - inf is NaN
    limits = torch.stack([lo, hi, offset], 1)
    if zero_centered:
        hi = torch.maximum(hi, lo.neg())
        lo = hi.neg()
    unit = hi - lo
    unit = unit.sub_(unit).nan_to_num_(nan=-0.5).add_(1.0)  # 0.5 where the range overflows
    low = lo * unit
    span = torch.addcmul(low, hi, unit, value=-1)  # of the opposite sign, as are the differences
    span.masked_fill_(span >= 0, -1.0)
    level = 255 - offset
    sizes = [len(rows) for rows in groups]
    for_pixels = (
        of.unsqueeze(1).split_with_sizes(sizes) for of in (low, unit, span, level, offset)
    )
    for number, (rows, *of, numbers) in enumerate(
        zip(groups, *for_pixels, limits.split_with_sizes(sizes), strict=True)
    ):
        done(number, Codes(_codes(rows, *of), numbers))


def _extremes(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Smallest and largest finite value of each row, and a number that is finite if all are."""
    most = torch.finfo(rows.dtype).max
    lo = rows.nan_to_num(nan=most, posinf=most, neginf=most).amin(1)
    hi = rows.nan_to_num(nan=-most, posinf=-most, neginf=-most).amax(1)
    return lo, hi, rows.sum(1)


def _as_one(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if len(parts) > 1 else parts[0]


def _codes(
    rows: Tensor, low: Tensor, unit: Tensor, span: Tensor, level: Tensor, offset: Tensor
) -> Tensor:
    share = torch.addcmul(low, rows, unit, value=-1).div_(span)
    torch.addcmul(offset, share, level, out=share)
    return share.nan_to_num_(nan=0.0, posinf=1.0, neginf=2.0).to(torch.uint8)
