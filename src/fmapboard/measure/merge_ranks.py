"""Merge the statistics of a batch that is split over several processes (ranks)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch.distributed as dist

from fmapboard.errors import CaptureError, ConfigurationError, WarnOnce, first_line
from fmapboard.model import distributed
from fmapboard.records import LayerMeasurement, Statistics

Shared = dict[tuple[str, str], tuple[Statistics, int]]
"""Layer call and kind -> the statistics, and the number of values per channel on one rank."""
Share = tuple[int, Shared]
"""A step's number, and what a rank shares of it."""


class RankExchange:
    """Merges the statistics of each logged step over all ranks, in the worker thread.

    There is one exchange per logged step, in which each rank takes part, even if it has nothing to
    share. If an exchange fails, this is reported once. The statistics are then those of this rank
    alone, and no later step waits for the other ranks.

    Args:
        gather: takes this rank's share and returns those of all ranks, in the order of the ranks.
        warn: where errors are reported.
    """

    def __init__(self, gather: Callable[[Share], Sequence[Share]], warn: WarnOnce) -> None:
        self._gather, self._warn, self._has_failed = gather, warn, False

    @classmethod
    def among_all(cls, warn: WarnOnce) -> RankExchange | None:
        """The exchange of all ranks; None in a single process.

        Collective: every rank must call it.

        Raises:
            ConfigurationError: the ranks cannot be connected.
        """
        ranks = distributed.world_size()
        if ranks == 1:
            return None
        try:
            group: Any = dist.new_group(timeout=distributed.TIMEOUT, backend="gloo")
        except Exception as error:
            raise ConfigurationError(
                "reduce_statistics=True: the ranks cannot be connected with each other; every "
                f"rank must call watch() with it: {first_line(error)}"
            ) from error

        def gather(share: Share) -> list[Share]:
            gathered: list[Any] = [None] * ranks
            dist.all_gather_object(gathered, share, group=group)
            return gathered

        return cls(gather, warn)

    def merged(
        self, step: int, measured: tuple[LayerMeasurement, ...]
    ) -> tuple[LayerMeasurement, ...]:
        """Replace the statistics by those of the whole batch: extremes, mean, std, counts, flags.

        Every rank must call this for the same steps, in the same order. A tensor is merged over the
        ranks that measured it; pictures and histograms remain those of this rank.
        """
        if self._has_failed:
            return measured
        own: Share = (step, {})
        with self._reported("one step has statistics without those of this rank"):
            own = (step, _shared(measured))
        shares = self._exchanged(own)  # even if this rank has none: the other ranks wait for it
        with self._reported("one step has the statistics of this rank's batch alone"):
            return tuple([_over_ranks(part, shares) for part in measured])
        return measured

    @contextmanager
    def _reported(self, consequence: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._warn.error("reduce_statistics", error, consequence)

    def _exchanged(self, own: Share) -> Sequence[Share]:
        """The shares of all ranks; empty if they cannot be had."""
        try:
            shares = self._gather(own)
            steps = sorted({step for step, _ in shares})
            if len(steps) > 1:
                raise CaptureError(f"the ranks are at different steps: {steps}")
        except Exception as error:
            self._has_failed = True
            self._warn.error(
                "reduce_statistics",
                error,
                f"from step {own[0]} on, statistics are those of this rank's batch",
            )
            return ()
        return shares


def _shared(measured: tuple[LayerMeasurement, ...]) -> Shared:
    return {
        (m.layer_call.label, m.kind): (m.statistics, math.prod(m.shape) // m.statistics.mean.size)
        for m in measured
        if m.statistics is not None
    }


def _over_ranks(part: LayerMeasurement, shares: Sequence[Share]) -> LayerMeasurement:
    """A measurement with the statistics of all ranks that share some."""
    key = (part.layer_call.label, part.kind)
    parts = [shared[key] for _, shared in shares if key in shared]
    return replace(part, statistics=_merged(parts)) if parts else part


def _merged(shares: list[tuple[Statistics, int]]) -> Statistics:
    """Merge the statistics of parts of a batch, each with its number of values per channel.

    Means and squared deviations are combined as in Chan, Golub and LeVeque (1983), "Algorithms for
    computing the sample variance".
    """
    parts = [statistics for statistics, _ in shares]
    kinds = ("nan", "positive_infinity", "negative_infinity")
    nan, up, down = (np.sum([getattr(part, kind) for part in parts], axis=0) for kind in kinds)
    finite = np.stack([n - p.nan - p.positive_infinity - p.negative_infinity for p, n in shares])
    count = finite.sum(0)  # [C]
    # A channel without finite values on a rank (NaN) counts as 0 there.
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(finite * np.stack([p.mean for p in parts]), 0) / count
        spread = np.stack([p.std**2 + (p.mean - mean) ** 2 for p in parts])
        std = np.sqrt(np.nansum(finite * spread, 0) / count)
    low = np.fmin.reduce([p.minimum for p in parts])
    high = np.fmax.reduce([p.maximum for p in parts])
    uncounted = [part for part in parts if not part.counted]
    for part in uncounted:  # what one rank does not know is not known of the whole batch
        low[np.isnan(part.minimum)] = high[np.isnan(part.maximum)] = np.nan
        mean[part.nonfinite] = std[part.nonfinite] = np.nan
    one_value = (low == high) & (nan + up + down == 0) & (count > 1)
    flags = [part.dead for part in parts if part.dead is not None]
    dead = np.logical_and.reduce(flags) if flags else None
    return Statistics(low, high, mean, std, nan, up, down, one_value, dead, not uncounted)
