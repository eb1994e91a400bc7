"""Launch the statistics kernel on a tensor; needs Triton."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fmapboard.measure.fused.plan import VECTOR, Plan, Variant, by_stride, joined
from fmapboard.measure.fused.rows import FIELDS
from fmapboard.measure.fused.statistics_kernel import statistics_kernel

_WARPS = 8


def reduce(
    maps: Tensor, plan: Plan, drawn: Tensor | None, sample: tuple[int, int] | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Launch once.

    Args:
        maps: [N, C, *spatial].
        plan: How to read it.
        drawn: View [K, M, H, W] of the same values, which is copied; None copies nothing.
        sample: Size and step of the histogram sample; None takes none.

    Returns:
        The parts' numbers, int32 [10, parts, C]; the copy; and the sample, float32.
    """
    channels, parts = maps.shape[1], plan.parts
    rows = torch.empty(FIELDS, parts, channels, dtype=torch.int32, device=maps.device)
    copy = None if drawn is None else torch.empty(drawn.shape, dtype=maps.dtype, device=maps.device)
    number, step = sample or (0, 1)
    sampled = torch.empty(number, dtype=torch.float32, device=maps.device)
    lanes = plan.variant.channels * plan.variant.rows
    copied = 0 if copy is None else copy.numel()
    grid = (plan.blocks * parts + -(-copied // lanes) + -(-number // lanes),)
    statistics_kernel[grid](
        maps,
        rows,
        maps if drawn is None else drawn,
        maps if copy is None else copy,
        sampled,
        channels,
        parts,
        *plan.sizes,
        copied,
        *_axes([] if drawn is None else list(zip(drawn.shape, drawn.stride(), strict=True)), 4),
        number,
        step,
        *_axes(joined(by_stride(list(zip(maps.shape, maps.stride(), strict=True)))), 5),
        **constants(plan.variant),
    )
    return rows, copy, sampled if sample else None


def constants(variant: Variant) -> dict[str, int]:
    """The kernel's compile-time arguments and options."""
    return {
        "CHANNELS": variant.channels,
        "ROWS": variant.rows,
        "VECTOR": VECTOR if variant.vector else 1,
        "GENERAL": int(variant.general),
        "num_warps": _WARPS,
        "enable_fp_fusion": True,
    }


def _axes(axes: Sequence[tuple[int, int]], number: int) -> tuple[int, ...]:
    """Sizes of all axes but the first and strides of all, with axes of size 1 in front."""
    padded = [*[(1, 0)] * (number - len(axes)), *axes]
    return (*(size for size, _ in padded[1:]), *(stride for _, stride in padded))
