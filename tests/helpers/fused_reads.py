"""What runs in a ``TritonProcess`` that interprets: launches of the fused kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from torch import Tensor

from fmapboard.measure.fused import plan as plans
from fmapboard.measure.fused.rows import combine


def planned(maps: Tensor) -> plans.Plan | None:
    """The plan for a tensor."""
    aligned = maps.data_ptr() % (plans.VECTOR * maps.element_size()) == 0
    return plans.plan(tuple(maps.shape), maps.stride(), aligned)


def statistics_of(maps: Tensor, few_programs: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Min, max, mean and std [4, C] and non-finite counts [3, C]."""
    rows, _, _ = launched(maps, few_programs=few_programs)
    numbers, nonfinite = combine(rows.numpy())
    return np.stack(numbers), nonfinite


def launched(
    maps: Tensor,
    drawn: tuple[int, int] | None = None,
    sample: tuple[int, int] | None = None,
    few_programs: bool = False,
) -> Any:
    """What one launch writes; ``drawn`` is the number of samples and of channels to copy."""
    from fmapboard.measure.fused import launch

    if few_programs:  # several tiles per program, as a large tensor has
        plans._PROGRAMS = 1
        plans.plan.cache_clear()
    try:
        plan = planned(maps)
    finally:
        plans._PROGRAMS = 2048
        plans.plan.cache_clear()
    view = None if drawn is None else maps[: drawn[0], : drawn[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, on infinite values
        return launch.reduce(maps, plan, view, sample)


def tiles_of(maps: Tensor, most: int | None, centered: bool = False) -> Any:
    """``records.Planes`` of maps [K, M, H, W]."""
    from fmapboard.measure.fused.tiles import quantized

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiles = quantized(maps, most, centered=centered, channels=maps.shape[1], view="")
        return tiles.planes(tuple(maps.shape))
