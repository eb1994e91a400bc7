"""Statistics of a batch that several processes share: each has a part of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch.distributed as dist

from fmapboard.records import Floats, LayerMeasurement, Statistics


def over_ranks(measured: tuple[LayerMeasurement, ...]) -> tuple[LayerMeasurement, ...]:
    """The statistics as of the whole batch: extremes, mean, spread, counts and flags.

    Every rank must call this at the same logged steps. What a rank did not measure does not count;
    pictures and histograms stay those of this rank. One process alone gets back what it gave.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return measured
    own = {
        (m.layer_call.label, m.kind): (m.statistics, _values(m)) for m in measured if m.statistics
    }
    everybodys: list[Any] = [None] * dist.get_world_size()  # of what `own` is
    dist.all_gather_object(everybodys, own)
    whole = []
    for part in measured:
        key = (part.layer_call.label, part.kind)
        shares = [share[key] for share in everybodys if key in share]
        whole.append(replace(part, statistics=_merged(shares)) if shares else part)
    return tuple(whole)


def _values(measured: LayerMeasurement) -> int:
    """How many values a channel has on this rank."""
    assert measured.statistics is not None  # the caller has asked
    return int(np.prod(measured.shape, dtype=np.int64)) // measured.statistics.minimum.size


def _merged(shares: list[tuple[Statistics, int]]) -> Statistics:
    """Chan, Golub and LeVeque (1983): means and squared deviations of parts to those of a whole."""
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
    """Over ranks [R, C]; a rank whose channel has no finite value adds nothing."""
    total: Floats = np.where(np.isnan(rows), 0.0, rows).sum(0)
    return total
