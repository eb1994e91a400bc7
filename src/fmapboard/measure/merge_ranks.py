"""Merge the statistics of a batch that is split over several processes (ranks)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch.distributed as dist

from fmapboard.records import Floats, LayerMeasurement, Statistics


def over_ranks(measured: tuple[LayerMeasurement, ...]) -> tuple[LayerMeasurement, ...]:
    """Replace the statistics by those of the whole batch: extremes, mean, std, counts and flags.

    A collective operation: every rank must call it at the same logged steps. A tensor is merged
    over the ranks that measured it; pictures and histograms remain those of this rank. In a single
    process the argument is returned unchanged.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return measured
    own = {
        (m.layer_call.label, m.kind): (m.statistics, _values_per_channel(m))
        for m in measured
        if m.statistics
    }
    gathered: list[Any] = [None] * dist.get_world_size()  # each like `own`
    dist.all_gather_object(gathered, own)
    merged = []
    for part in measured:
        key = (part.layer_call.label, part.kind)
        shares = [share[key] for share in gathered if key in share]
        merged.append(replace(part, statistics=_merged(shares)) if shares else part)
    return tuple(merged)


def _values_per_channel(measured: LayerMeasurement) -> int:
    """Number of values per channel on this rank."""
    assert measured.statistics is not None  # checked by the caller
    return int(np.prod(measured.shape, dtype=np.int64)) // measured.statistics.minimum.size


def _merged(shares: list[tuple[Statistics, int]]) -> Statistics:
    """Merge the statistics of parts of a batch, each with its number of values per channel.

    Means and squared deviations are combined as in Chan, Golub and LeVeque (1983), "Algorithms for
    computing the sample variance".
    """
    parts = [statistics for statistics, _ in shares]
    nan, up, down = (
        np.sum([getattr(part, name) for part in parts], axis=0)
        for name in ("nan", "positive_infinity", "negative_infinity")
    )
    finite = np.stack([n - p.nan - p.positive_infinity - p.negative_infinity for p, n in shares])
    count = finite.sum(0)  # [C]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _sum(finite * np.stack([p.mean for p in parts])) / count
        spread = np.stack([p.std**2 + (p.mean - mean) ** 2 for p in parts])
        std = np.sqrt(_sum(finite * spread) / count)
    low = np.fmin.reduce([p.minimum for p in parts])
    high = np.fmax.reduce([p.maximum for p in parts])
    one_value = (low == high) & (nan + up + down == 0) & (count > 1)
    flags = [part.dead for part in parts if part.dead is not None]
    dead = np.logical_and.reduce(flags) if flags else None
    return Statistics(low, high, mean, std, nan, up, down, one_value, dead)


def _sum(rows: Floats) -> Floats:
    """Sum over ranks [R, C]; a channel without finite values on a rank (NaN) counts as 0."""
    total: Floats = np.where(np.isnan(rows), 0.0, rows).sum(0)
    return total
