"""Combine the numbers of a statistics kernel's programs in float64, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fmapboard.records import Floats

FIELDS = 10
"""Min, max, unit, shift, sum, sum of squares, and the counts of finite, NaN, +Inf, -Inf values."""


def combine(
    rows: npt.NDArray[np.int32],
) -> tuple[tuple[Floats, Floats, Floats, Floats], npt.NDArray[np.int64]]:
    """Statistics of each channel from those of its parts.

    Args:
        rows: What the kernel wrote, [10, parts, C]; the first six are bit patterns of float32. The
            sums are over ``unit * x - shift`` of the finite values.

    Returns:
        Min, max, mean and std, each f64 [C], NaN for a channel without finite values; and the
        counts of NaN, +Inf and -Inf, [3, C].
    """
    lo, hi, unit, shift, sums, squares = rows[:6].view(np.float32).astype(np.float64)
    count = rows[6].astype(np.int64)  # [parts, C]
    lowest, highest, total = lo.min(0), hi.max(0), count.sum(0)
    has_values, is_empty = count > 0, total == 0
    safe = np.maximum(count, 1)
    means = np.where(has_values, (shift + sums / safe) / unit, 0.0)
    spread: npt.NDArray[Any] = np.maximum(squares - np.square(sums) / safe, 0.0) / np.square(unit)
    mean = (count * means).sum(0) / np.maximum(total, 1)
    spread = np.where(has_values, spread + count * np.square(means - mean), 0.0)
    std = np.sqrt(spread.sum(0) / np.maximum(total, 1))
    same = lowest == highest
    mean, std = np.where(same, lowest, mean), np.where(same, 0.0, std)
    for numbers in (lowest, highest, mean, std):
        numbers[is_empty] = np.nan
    return (lowest, highest, mean, std), rows[7:].sum(1, dtype=np.int64)
