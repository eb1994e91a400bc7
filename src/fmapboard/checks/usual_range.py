"""Numbers out of their usual range: updates, BatchNorm's running variance, the input's scale."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard import tags
from fmapboard.checks.finding import Finding
from fmapboard.checks.record_builder import BATCHNORM_GAP, UPDATE_RATIO
from fmapboard.checks.run_record import NotRecorded, RunRecord


@dataclass(frozen=True, slots=True)
class UpdateRatioCheck:
    """Updates of the weights that are very small or very large, relative to the weights.

    The ratio is |Δw| / |w| of one optimizer step. Biases and the like, which may start at 0, are
    left out: only weights with kernels, and other parameters named ``weight`` of layers that are
    no normalization, count.

    Attributes:
        low: reported if all ratios of all logged steps are below it; at least four steps. A ratio
            of 0 counts if the learning rate is known to be above 0.
        high: reported if the median over the weights is above it at two of the first four logged
            steps, or ten times above it at one.
    """

    low: float = 1e-6
    high: float = 0.1
    kind: ClassVar[str] = "update_ratio"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        series = record.group(UPDATE_RATIO)
        weights = {n: s for n, s in series.items() if n.rpartition(".")[2] == "weight"}
        kernels = _kernels(record)
        chosen = {n: s for n, s in weights.items() if n in kernels} or weights or series
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
        early = median[:4]
        if (early > self.high).sum() >= 2 or (early > 10 * self.high).any():
            at = int((early > self.high).argmax())
            worst = list(chosen)[int(np.nanargmax(ratios[at]))]
            return [self._finding(float(early.max()), steps[at], worst, is_low=False)]
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
            class_="figure",
            message=text,
            since_step=since,
            parameter=parameter,
            value=value,
            healthy="1e-4 to 4e-2 times their norm",
            meaning="At this rate training takes very long, or stands still"
            if is_low
            else "Steps of this size destroy what the weights have learned",
            advice="Raise the learning rate, unless a tiny rate is intended"
            if is_low
            else "Lower the learning rate, or warm it up",
        )


@dataclass(frozen=True, slots=True)
class BatchnormGapCheck:
    """BatchNorm's running variance far from that of the batches, and not about to get closer.

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
                class_="figure",
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


@dataclass(frozen=True, slots=True)
class InputScaleCheck:
    """Input images whose values are far from the usual range: not normalized, or twice.

    Attributes:
        largest: median over the logged steps of the largest magnitude from which it is reported.
        spread: median over the logged steps of the standard deviation up to which it is reported.
    """

    largest: float = 30.0
    spread: float = 0.03
    kind: ClassVar[str] = "input_scale"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        needed = {"minimum", "maximum", "std"}
        every = [numbers for numbers in record.network_input.values() if needed <= numbers.keys()]
        if not every:
            raise NotRecorded(f"the input's range (key input of {tags.OVERVIEW})")
        magnitude = float(np.median([max(abs(n["minimum"]), abs(n["maximum"])) for n in every]))
        varied = [n["std"] for n in every if n["maximum"] > n["minimum"]]
        spread = float(np.median(varied)) if varied else math.inf
        since = min(record.network_input)
        if magnitude > self.largest:
            text = (
                f"the largest magnitude of the input images is {magnitude:.3g} (median of "
                f"{len(every)} logged steps)"
            )
            return [self._finding(record, text, magnitude, since, is_large=True)]
        if spread < self.spread:
            text = (
                f"input images have a standard deviation of {spread:.2g} (median of "
                f"{len(every)} logged steps)"
            )
            return [self._finding(record, text, spread, since, is_large=False)]
        return []

    def _finding(
        self, record: RunRecord, text: str, value: float, since: int, *, is_large: bool
    ) -> Finding:
        when = f"since step {since}" if record.health is None else record.health.since_text(since)
        return Finding(
            kind=self.kind,
            class_="figure",
            message=f"{text} {when}",
            since_step=since,
            value=value,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning="The images are not scaled: 0 to 255 instead of 0 to 1"
            if is_large
            else "The images were scaled twice, or have hardly any contrast",
            advice="Normalize the images once, to a standard deviation near 1",
            picture=f"{tags.prefix(record.name)}{tags.network_input(0)}",
        )


def _kernels(record: RunRecord) -> set[str]:
    """Names of the weights of layers with kernels; empty if the layers are not recorded."""
    rows = [] if record.health is None else record.weighted_layers()
    return {f"{row.facts.layer}.weight" for row in rows}
