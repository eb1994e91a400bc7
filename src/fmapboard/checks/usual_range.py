"""Numbers out of their usual range: updates of the weights, and BatchNorm's running variance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.checks.finding import Finding, named
from fmapboard.checks.run_record import (
    BATCHNORM_GAP,
    UPDATE_RATIO,
    NotRecorded,
    RunRecord,
    has_zero_gradient,
)


@dataclass(frozen=True, slots=True)
class UpdateRatioCheck:
    """Updates of the weights that are very small or very large, relative to the weights.

    The ratio is |Δw| / |w| of one optimizer step. Biases and the like, which may start at 0, are
    left out: only weights with kernels, and other parameters named ``weight`` of layers that are
    no normalization, count, unless their gradient is 0 at every logged step.

    Attributes:
        low: reported if all ratios of all logged steps are below it; at least four steps. A ratio
            of 0 counts if the learning rate is known to be above 0.
        high: reported if the median over the weights is above it at two of the first four logged
            steps. Neither is reported if the network has layers with kernels and trains none of
            them: a fresh head on a frozen backbone has nothing to lose. Nor are steps whose rate is
            known to be none: one step of L-BFGS is many steps along a line.
        replaced: reported if that median is above it at one of those steps.
    """

    low: float = 1e-6
    high: float = 0.2
    replaced: float = 1.0
    kind: ClassVar[str] = "update_ratio"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        series = record.group(UPDATE_RATIO)
        weights = {n: s for n, s in series.items() if n.rpartition(".")[2] == "weight"}
        kernels = _kernels(record)
        trained = {n: s for n, s in weights.items() if n in kernels}
        chosen = trained or weights or series
        chosen = {n: s for n, s in chosen.items() if not has_zero_gradient(record, n)}
        if not chosen:
            return []
        every = np.unique(np.concatenate([one.steps for one in chosen.values()]))
        ratios = np.full((len(every), len(chosen)), np.nan)
        for column, one in enumerate(chosen.values()):
            ratios[np.searchsorted(every, one.steps), column] = one.values
        moving = [at for at, facts in record.facts.items() if facts.rates and facts.rates[1] > 0]
        # At a rate of 0, or one that is not known, no update is none to judge.
        ratios[(ratios <= 0) & ~np.isin(every, moving)[:, None]] = np.nan
        known = ~np.isnan(ratios).all(1)
        ratios, steps = ratios[known], every[known].tolist()
        if not steps:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            median = np.nanmedian(ratios, axis=1)  # [steps]
        searched = [at for at, facts in record.facts.items() if facts.rates is None]
        median[np.isin(steps, searched)] = np.nan
        early = median[:4] if trained or not kernels else median[:0]
        if (early > self.high).sum() >= 2 or (early > self.replaced).any():
            at = int((early > self.high).argmax())
            worst = list(chosen)[int(np.nanargmax(ratios[at]))]
            return [self._finding(float(np.nanmax(early)), steps[at], worst, is_low=False)]
        highest = float(np.nanmax(ratios))
        if len(steps) >= 4 and highest < self.low:
            largest = list(chosen)[int(np.nanargmax(np.nanmax(np.nan_to_num(ratios), axis=0)))]
            return [self._finding(highest, steps[0], largest, is_low=True)]
        return []

    def _finding(self, value: float, since: int, parameter: str, *, is_low: bool) -> Finding:
        text = (
            f"no optimizer step changes a weight by more than {value:.1e} of its norm, since step "
            f"{since}; the most in `{parameter}`"
            if is_low
            else f"an optimizer step changes the weights by {value:.2g} times their norm (median "
            f"over the weights) since step {since}; the most in `{parameter}`"
        )
        return Finding(
            kind=self.kind,
            class_="note",
            message=text,
            since_step=since,
            parameter=parameter,
            value=value,
            healthy="1e-4 to 4e-2 times their norm",
            meaning="At this rate training takes very long, or stands still"
            if is_low
            else "Steps of this size destroy what the weights have learned: the learning rate, or "
            "its product with the weight decay, is too large",
            advice="Raise the learning rate, unless a tiny rate is intended"
            if is_low
            else "Lower the learning rate or the weight decay, or warm the rate up",
        )


@dataclass(frozen=True, slots=True)
class BatchnormGapCheck:
    """BatchNorm's running variance far from that of the batches, and not about to get closer.

    Or still mostly the initial one, which does not depend on the batches, at the last two logged
    steps: the momentum is 0 or far too small.

    Attributes:
        gap: median over the layers of |log(batch variance / running variance)| from which it is
            reported; of each layer, the median of the last quarter of the logged steps.
        decay: the gap is shrinking, and not reported, if that is less than this times the median of
            the quarter before.
        least: number of logged steps.
        span: number of training steps between the first and the last of them; until then the
            running variance still approaches that of the batches.
    """

    gap: float = 1.0
    decay: float = 0.9
    least: int = 8
    span: int = 100
    kind: ClassVar[str] = "batchnorm_gap"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        initial = self._initial(record)
        if initial:
            return initial
        if not record.scalars.get(BATCHNORM_GAP):
            raise NotRecorded(f"the scalars {BATCHNORM_GAP}/…, which only BatchNorm layers have")
        late: dict[str, tuple[float, float]] = {}
        steps: list[int] = []
        for layer, one in record.group(BATCHNORM_GAP).items():
            known = np.isfinite(one.values)
            values, at = np.abs(one.values[known]), one.steps[known]
            quarter = len(values) // 4
            if len(values) >= self.least and at[-1] - at[0] >= self.span:
                third, fourth = values[-2 * quarter : -quarter], values[-quarter:]
                late[layer] = float(np.median(third)), float(np.median(fourth))
                steps.append(int(at[-2 * quarter]))
        if not late:
            return []
        before, value = (float(np.median(part)) for part in zip(*late.values(), strict=True))
        if value < self.gap or value < self.decay * before:
            return []
        worst, since = max(late, key=lambda layer: late[layer][1]), min(steps)
        factor = math.exp(min(value, 700))
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message=f"the variance of the batches differs by a factor of {factor:.2g} from "
                f"BatchNorm's running variance (median of {len(late)} layers) since step {since}; "
                f"the most in `{worst}`",
                since_step=since,
                layer=worst,
                value=value,
                healthy="a factor of 1.2 or less",
                meaning="In eval mode the network computes something else than in training: the "
                "batches are too small or differ from each other, or the momentum is too small",
                advice="Use larger or better mixed batches, another momentum, or GroupNorm",
            )
        ]

    def _initial(self, record: RunRecord) -> list[Finding]:
        """Layers whose running variance is still mostly the initial one."""
        last = list(record.facts.items())[-2:]
        if len(last) < 2:
            return []
        lasting = set(last[0][1].initial_norms)
        names = [n for n in last[1][1].initial_norms if n in lasting and not _is_close(record, n)]
        if not names:
            return []
        since = next(at for at, of in record.facts.items() if names[0] in of.initial_norms)
        count = len(names) + last[-1][1].left_out.get("initial_norms", 0)
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message=f"the running variance of {count} BatchNorm layer{'s' * (count > 1)} is "
                f"still 90 % or more the initial value of 1 after 50 batches or more, since step "
                f"{since}: {named(names, count)}",
                since_step=since,
                layer=names[0],
                value=count,
                healthy="10 % or less after 50 batches, at the usual momentum of 0.1",
                meaning="In eval mode the network computes something else than in training: the "
                "momentum is 0 or far too small (in torch it is the weight of the new batch)",
                advice="Use a momentum of 0.1 or 0.01; call eval() on layers that are to stay as "
                "they are",
            )
        ]


_CLOSE = 0.2
"""Gap up to which a running variance fits the batches, whatever it is made of."""


def _is_close(record: RunRecord, layer: str) -> bool:
    series = record.scalars.get(BATCHNORM_GAP, {}).get(layer)
    known = np.zeros(0) if series is None else series.values[np.isfinite(series.values)]
    return bool(known.size and np.median(np.abs(known[-max(1, known.size // 4) :])) <= _CLOSE)


def _kernels(record: RunRecord) -> set[str]:
    """Names of the weights of layers with kernels; empty if the layers are not recorded."""
    rows = [] if record.health is None else record.weighted_layers()
    return {f"{row.facts.layer}.weight" for row in rows}
