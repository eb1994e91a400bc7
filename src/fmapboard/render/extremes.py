"""The smallest and the largest finite value of an array."""

from __future__ import annotations

import numpy as np

from fmapboard.records import Floats


def finite_extremes(
    values: Floats, axes: tuple[int, ...] | None = None
) -> tuple[Floats, Floats, bool]:
    """Smallest and largest finite value along the given axes.

    Args:
        values: Any floating-point array.
        axes: Axes to reduce; None reduces all.

    Returns:
        Min and max as f64 (inf and -inf if there is no finite value), and True if all values are
        finite.

    Example:
        >>> finite_extremes(np.array([1.0, np.nan, 3.0]))
        (array(1.), array(3.), False)
    """
    lo = np.asarray(values.min(axes, initial=np.inf), np.float64)
    hi = np.asarray(values.max(axes, initial=-np.inf), np.float64)
    if np.isfinite(lo).all() and np.isfinite(hi).all():
        return lo, hi, True
    finite = np.isfinite(values)
    lo = np.asarray(np.where(finite, values, np.inf).min(axes, initial=np.inf), np.float64)
    hi = np.asarray(np.where(finite, values, -np.inf).max(axes, initial=-np.inf), np.float64)
    return lo, hi, bool(finite.all())
