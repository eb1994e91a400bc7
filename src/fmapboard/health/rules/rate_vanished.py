"""A learning rate that falls too soon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats import tags
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.record import LowRate, NotRecorded, RateHistory
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class RateVanishedCheck(Rule):
    """A learning rate next to nothing in every parameter group, long before the end of the run.

    Below 1e-4 times its maximum for a tenth of the run, or below 5e-3 times it for most of it.

    Why it hurts: the weights hardly move any more.

    Silent: while one parameter group still has a higher rate, and in the last tenth of the run,
    where cosine schedules end near 0.

    Example: ``CosineAnnealingLR(optimizer, T_max=epochs)`` whose ``step()`` is called per batch.

    Attributes:
        share: share of the run for which the rate must have vanished, up to the newest step.
        long: the same for a rate that is only next to nothing.
        least: number of logged steps at which it must be so.
    """

    share: float = thresholds.RATE_VANISHED_FOR.value
    long: float = thresholds.RATE_REDUCED_FOR.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "rate_vanished"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.record.rates:
            raise NotRecorded(f"the scalars {tags.LEARNING_RATE}/…")
        moved = [rate for rate in evidence.record.rates.values() if rate.peak > 0]
        if not moved:
            return
        vanished = thresholds.RATE_VANISHED.value
        share = vanished
        since, part = self._low_since(moved, share)
        if part <= self.share:
            share = thresholds.RATE_REDUCED.value
            since, part = self._low_since(moved, share)
            if part <= self.long:
                return
        highest = max(moved, key=lambda rate: rate.peak)
        yield Finding(
            message=f"the learning rate has been below {share:.0e} times its maximum of "
            f"{highest.peak:.2g} since step {since}, for {whole_percent(part)} of the "
            f"run; it is {highest.rate:.1e}",
            since_step=since,
            value=highest.rate / highest.peak,
            healthy=f"{vanished:.0e} times the maximum or more until the last tenth of the run",
            meaning="The weights hardly move any more: the scheduler steps more often than "
            "its arguments count, such as per batch instead of per epoch, or its decay is too "
            "fast",
            advice="Call scheduler.step() once per epoch, or give its arguments in batches, "
            "and look at the scalars learning_rate/…",
        )

    def _low_since(self, rates: Sequence[RateHistory], share: float) -> tuple[int, float]:
        """The step since which all rates are below a share of their maximum, and for how long.

        That is a share of the run, 0 to 1; 0 if it is so at too few steps.
        """
        first = min(rate.first for rate in rates)
        last = max(rate.last for rate in rates)
        low = [rate.low.get(share, LowRate(last, 0)) for rate in rates]
        since = max(spell.since for spell in low)
        if min(spell.steps for spell in low) < self.least:
            return since, 0.0
        return since, (last - since) / max(last - first, 1)
