"""A sample of a tensor's values to the few buckets that TensorBoard shows."""

from __future__ import annotations

import numpy as np

from fmapboard.records import Floats, Histogram, Sample

BUCKETS = 30
"""TensorBoard re-bins to 30 buckets of one width, so 30 of one width are shown as they are."""


def histogram(tag: str, sample: Sample, buckets: int = BUCKETS) -> Histogram:
    """Count the finite values of a sample in buckets of one width, scaled up to the whole tensor.

    The buckets reach from the tensor's smallest finite value to its largest where these are known
    (`Sample.lo`), else from the sample's. A sample of n values tells the share p of a bucket with a
    relative standard error of sqrt((1 - p) / (n * p)). A tensor of one single value gets one bucket
    of width 1 around it; one without any finite value gets no bucket at all.

    Returns:
        edges f64 [K + 1], counts f64 [K]; both empty where there is no finite value.
    """
    values = sample.values
    finite = values[np.isfinite(values)]
    seen = values.size or 1
    nonfinite = round((values.size - finite.size) * sample.total / seen)
    if not finite.size:
        return Histogram(tag, np.empty(0), np.empty(0), nonfinite)
    lo, hi = _extremes(finite, sample)
    if lo == hi:
        lo, hi, buckets = lo - 0.5, hi + 0.5, 1
    edges = lo + (hi / 2 - lo / 2) * (np.arange(buckets + 1) * (2 / buckets))
    edges[-1] = hi
    counts = _count(finite, lo, hi, buckets)
    return Histogram(tag, edges, counts * (sample.total / seen), nonfinite)


def _extremes(finite: Floats, sample: Sample) -> tuple[float, float]:
    lo = sample.lo if np.isfinite(sample.lo) else float(finite.min())
    hi = sample.hi if np.isfinite(sample.hi) else float(finite.max())
    return min(lo, float(finite.min())), max(hi, float(finite.max()))


def _count(finite: Floats, lo: float, hi: float, buckets: int) -> Floats:
    """f64 [buckets]: how many values lie in each; halves keep 3e38 - (-3e38) from overflowing."""
    place = finite.astype(np.float64) / 2 - lo / 2
    place *= buckets / (hi / 2 - lo / 2)
    index = np.clip(place.astype(np.int64), 0, buckets - 1)
    return np.bincount(index, minlength=buckets).astype(np.float64)
