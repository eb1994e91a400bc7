"""Histograms of samples, a file of its own for how a tensor's counts follow from a sample's."""

from __future__ import annotations

import math

import numpy as np

from fmapboard.records import Floats, Histogram, Sample
from fmapboard.render.quantize import finite_extremes

BUCKETS = 30
"""Number of buckets; TensorBoard re-bins to 30 of equal width, so these are shown unchanged."""


def histogram(tag: str, sample: Sample) -> Histogram:
    """Count the finite values of a sample in ``BUCKETS`` of equal width, scaled up to the tensor.

    The buckets span the tensor's finite range if it is known (``Sample.lo``), otherwise the
    sample's. With n sampled values, the count of a bucket that holds the fraction p of the tensor
    has a relative standard error of sqrt((1 - p) / (n * p)). If all values are equal, there is one
    bucket of width 1 around them, or wider where float64 cannot represent that.

    Args:
        tag: Tag of the histogram.
        sample: The values.

    Returns:
        Edges f64 [K + 1] and counts f64 [K]; both are empty if there is no finite value.
    """
    values = sample.values
    size = max(values.size, 1)
    smallest, largest, is_finite = finite_extremes(values)
    finite = values if is_finite else values[np.isfinite(values)]
    left_out = values.size - finite.size
    nonfinite = round(left_out * sample.total / size)
    if not finite.size:
        nothing = np.empty(0)
        return Histogram(tag, nothing, nothing, nonfinite)
    lo = float(np.fmin(smallest, sample.lo))  # the sample's if the tensor's is NaN: not known
    hi = float(np.fmax(largest, sample.hi))
    buckets = BUCKETS
    if lo == hi:
        buckets = 1
        below = math.nextafter(lo, -math.inf)
        above = math.nextafter(hi, math.inf)
        lo = min(lo - 0.5, below)
        hi = max(hi + 0.5, above)
    edges, counts = _count(finite, lo, hi, buckets)
    scaled_up = counts * (sample.total / size)
    return Histogram(tag, edges, scaled_up, nonfinite)


def _count(finite: Floats, lo: float, hi: float, buckets: int) -> tuple[Floats, Floats]:
    """Edges f64 [buckets + 1] and the number of values in each bucket, f64 [buckets]."""
    half = 1.0 if math.isfinite(hi - lo) else 0.5  # keeps 1e308 - (-1e308) from overflowing
    start = lo * half
    span = hi * half - start
    fractions = np.linspace(0, 1, buckets + 1)
    edges = (start + span * fractions) / half
    edges = np.minimum(edges, hi)
    edges[-1] = hi
    halved = np.multiply(finite, half, dtype=np.float64)
    place = (halved - start) / span * buckets
    counts = np.bincount(place.astype(np.intp), minlength=buckets + 1)
    largest = counts[buckets:].sum()  # the largest value itself
    counts[buckets - 1] += largest
    return edges, counts[:buckets].astype(np.float64)
