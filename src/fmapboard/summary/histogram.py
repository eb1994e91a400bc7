"""Build the histogram that TensorBoard shows from a sample of a tensor's values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fmapboard.records import Floats, Histogram, Sample
from fmapboard.render.quantize import finite_extremes

BUCKETS = 30
"""Number of buckets; TensorBoard re-bins to 30 of equal width, so these are shown unchanged."""


def histogram(tag: str, sample: Sample, buckets: int = BUCKETS) -> Histogram:
    """Count the finite values of a sample in buckets of equal width, scaled up to the whole tensor.

    The buckets span the tensor's finite range if it is known (``Sample.lo``), otherwise the
    sample's. With n sampled values, the count of a bucket that holds the fraction p of the tensor
    has a relative standard error of sqrt((1 - p) / (n * p)). If all values are equal, there is one
    bucket of width 1 around them, or wider where float64 cannot represent that.

    Args:
        tag: Tag of the histogram.
        sample: The values.
        buckets: Number of buckets.

    Returns:
        Edges f64 [K + 1] and counts f64 [K]; both are empty if there is no finite value.
    """
    values = sample.values
    seen = values.size or 1
    smallest, largest, is_finite = finite_extremes(values)
    finite = values if is_finite else values[np.isfinite(values)]
    if not finite.size:
        return Histogram(tag, np.empty(0), np.empty(0), round(sample.total * values.size / seen))
    lo, hi = _outermost(float(smallest), sample.lo, min), _outermost(float(largest), sample.hi, max)
    nonfinite = round((values.size - finite.size) * sample.total / seen)
    if lo == hi:
        buckets = 1
        lo = min(lo - 0.5, math.nextafter(lo, -math.inf))
        hi = max(hi + 0.5, math.nextafter(hi, math.inf))
    edges, counts = _count(finite, lo, hi, buckets)
    return Histogram(tag, edges, counts * (sample.total / seen), nonfinite)


def _count(finite: Floats, lo: float, hi: float, buckets: int) -> tuple[Floats, Floats]:
    """Edges f64 [buckets + 1] and the number of values in each bucket, f64 [buckets]."""
    half = 1.0 if math.isfinite(hi - lo) else 0.5  # keeps 1e308 - (-1e308) from overflowing
    start, span = lo * half, hi * half - lo * half
    edges = np.minimum((start + span * _fractions(buckets)) / half, hi)
    edges[-1] = hi
    factor = buckets / span if span * 1e300 > buckets else math.inf
    if math.isfinite(factor) and half == 1.0:
        place = np.subtract(finite, lo, dtype=np.float64)
        place *= factor
    else:
        place = (finite.astype(np.float64) * half - start) / span * buckets
    counts = np.bincount(place.astype(np.intp), minlength=buckets + 1)
    counts[buckets - 1] += counts[buckets:].sum()  # the largest value itself
    return edges, counts[:buckets].astype(np.float64)


@lru_cache(maxsize=8)
def _fractions(buckets: int) -> Floats:
    """f64 [buckets + 1], evenly spaced from 0 to 1."""
    return np.linspace(0, 1, buckets + 1)


def _outermost(own: float, known: float, choose: Callable[[float, float], float]) -> float:
    """An extreme of the sample, or that of the whole tensor if it is known."""
    return choose(own, known) if math.isfinite(known) else own
