"""Merge the statistics of a batch that is split over several processes (ranks)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from fmapboard.errors import CaptureError, ConfigurationError, WarnOnce, first_line
from fmapboard.model import distributed
from fmapboard.records import Floats, LayerMeasurement, Statistics

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
        self._gather = gather
        self._warn = warn
        self._has_failed = False

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
                raise CaptureError(
                    f"the ranks are at different steps: {steps}; give every rank the same every= "
                    "and start_step=, and let all of them take every step"
                )
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
    """What this rank shares of its measurements."""
    shared: Shared = {}
    for measurement in measured:
        statistics = measurement.statistics
        if statistics is not None:
            size = math.prod(measurement.shape) // statistics.mean.size
            shared[measurement.layer_call.label, measurement.kind] = (statistics, size)
    return shared


def _over_ranks(part: LayerMeasurement, shares: Sequence[Share]) -> LayerMeasurement:
    """A measurement with the statistics of all ranks that share some."""
    key = (part.layer_call.label, part.kind)
    parts = [shared[key] for _, shared in shares if key in shared]
    return replace(part, statistics=_merged(parts)) if parts else part


def _merged(shares: list[tuple[Statistics, int]]) -> Statistics:
    """Merge the statistics of parts of a batch, each with its number of values per channel.

    Means and squared deviations are combined as in Chan, Golub and LeVeque (1983), "Algorithms for
    computing the sample variance". What one rank does not know is not known of the whole batch.
    """
    parts = [statistics for statistics, _ in shares]
    nan = np.sum([part.nan for part in parts], axis=0)
    positive_infinity = np.sum([part.positive_infinity for part in parts], axis=0)
    negative_infinity = np.sum([part.negative_infinity for part in parts], axis=0)
    minimum = np.fmin.reduce([part.minimum for part in parts])
    maximum = np.fmax.reduce([part.maximum for part in parts])
    counts = np.stack([_finite_values(part, size) for part, size in shares])  # [R, C]
    mean, std = _merged_moments(parts, counts)
    uncounted = [part for part in parts if not part.counted]
    for part in uncounted:
        minimum[np.isnan(part.minimum)] = np.nan
        maximum[np.isnan(part.maximum)] = np.nan
        mean[part.nonfinite] = np.nan
        std[part.nonfinite] = np.nan
    # Made anew, because a rank with one value per channel cannot tell.
    is_finite = nan + positive_infinity + negative_infinity == 0
    constant = (minimum == maximum) & is_finite & (counts.sum(0) > 1)
    floor = parts[0].floor
    return Statistics(
        minimum=minimum,
        maximum=maximum,
        mean=mean,
        std=std,
        nan=nan,
        positive_infinity=positive_infinity,
        negative_infinity=negative_infinity,
        constant=constant,
        dead=None if floor is None else constant & (maximum == floor),
        counted=not uncounted,
        floor=floor,
        spread=parts[0].spread,
    )


def _finite_values(part: Statistics, size: int) -> npt.NDArray[np.int64]:
    """How many of the ``size`` values of each channel are finite, [C]."""
    return size - part.nan - part.positive_infinity - part.negative_infinity


def _merged_moments(
    parts: list[Statistics], counts: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Mean and std of each channel, [C]; NaN if a rank does not know that of its finite values.

    Args:
        parts: The statistics of R ranks.
        counts: Numbers of finite values, [R, C].
    """
    means = np.stack([part.mean for part in parts])  # [R, C]
    stds = np.stack([part.std for part in parts])  # [R, C]
    is_empty = counts == 0
    means[is_empty] = 0.0
    stds[is_empty] = 0.0
    total = counts.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no finite value on any rank
        mean = (counts * means).sum(0) / total
        squares = counts * (np.square(stds) + np.square(means - mean))  # [R, C]
        squares[is_empty] = 0.0  # of a mean that is not known
        std = np.sqrt(squares.sum(0) / total)
    return mean, std
