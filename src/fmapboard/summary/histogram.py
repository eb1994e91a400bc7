"""A sample of a tensor's values to the few buckets that TensorBoard shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fmapboard.records import Floats, Histogram, Sample
from fmapboard.render.extremes import finite_extremes

BUCKETS = 30
"""TensorBoard re-bins to 30 buckets of one width, so 30 of one width are shown as they are."""


def histogram(tag: str, sample: Sample, buckets: int = BUCKETS) -> Histogram:
    """Count the finite values of a sample in buckets of one width, scaled up to the whole tensor.

    The buckets reach from the tensor's smallest finite value to its largest where these are known
    (`Sample.lo`), else from the sample's. A sample of n values tells the share p of a bucket with a
    relative standard error of sqrt((1 - p) / (n * p)). A tensor of one single value gets one bucket
    of width 1 around it, or as narrow as float64 can; one without any finite value gets no bucket.

    Returns:
        edges f64 [K + 1], counts f64 [K]; both empty where there is no finite value.
    """
    values = sample.values
    seen = values.size or 1
    smallest, largest, is_finite = finite_extremes(values)
    finite = values if is_finite else values[np.isfinite(values)]
    if not finite.size:
        return Histogram(tag, np.empty(0), np.empty(0), round(sample.total * values.size / seen))
    lo, hi = _reach(float(smallest), sample.lo, min), _reach(float(largest), sample.hi, max)
    nonfinite = round((values.size - finite.size) * sample.total / seen)
    if lo == hi:
        buckets = 1
        lo = min(lo - 0.5, math.nextafter(lo, -math.inf))
        hi = max(hi + 0.5, math.nextafter(hi, math.inf))
    edges, counts = _count(finite, lo, hi, buckets)
    return Histogram(tag, edges, counts * (sample.total / seen), nonfinite)


def _count(finite: Floats, lo: float, hi: float, buckets: int) -> tuple[Floats, Floats]:
    """Edges f64 [buckets + 1], and how many values lie between each two, f64 [buckets]."""
    half = 1.0 if math.isfinite(hi - lo) else 0.5  # keeps 1e308 - (-1e308) from overflowing
    start, span = lo * half, hi * half - lo * half
    edges = np.minimum((start + span * _parts(buckets)) / half, hi)
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
def _parts(buckets: int) -> Floats:
    """f64 [buckets + 1], from 0 to 1."""
    return np.linspace(0, 1, buckets + 1)


def _reach(own: float, known: float, furthest: Callable[[float, float], float]) -> float:
    """An extreme of the sample, or the whole tensor's where that is known."""
    return furthest(own, known) if math.isfinite(known) else own
