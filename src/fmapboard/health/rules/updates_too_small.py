"""Optimizer steps that hardly move the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, Ratios, late_loss, quoted
from fmapboard.health.finding import Finding, percent, rounded, times
from fmapboard.health.rule import Rule


class Small(NamedTuple):
    """How small updates are.

    Attributes:
        value: their median, or the largest of them.
        limit: below which it is reported.
        is_median: it is the median.
    """

    value: float
    limit: float
    is_median: bool


@dataclass(frozen=True, slots=True)
class UpdatesTooSmallCheck(Rule):
    """Updates of the weights that are tiny relative to the weights, |Δw| / |w| of one step.

    The weights that count are those of `updates_too_large`, at four logged steps at least. A ratio
    of 0 counts if the learning rate is known to be above 0.

    Why it hurts: training takes very long, or stands still.

    Silent: if the loss falls by a fifth.

    Example: Adam with a learning rate of 1e-7.

    Attributes:
        low: reported if all ratios of all logged steps are below it.
        idle: reported if their median over 50 steps or more is below it, and the loss hardly falls:
            late in the run it is above 0.95 times its first value (``low``: 0.85 times). Where no
            loss is known, the median over the weights must be below it at each logged step.
    """

    low: float = thresholds.UPDATE_LOW.value
    idle: float = thresholds.UPDATE_IDLE.value
    kind: ClassVar[str] = "updates_too_small"
    group: ClassVar[str] = "update_ratio"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="updates_too_small")
    cure: ClassVar[str] = "higher_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        ratios = evidence.update_ratios
        if ratios is None or len(ratios.steps) < thresholds.LOGGED_STEPS.value:
            return
        small = self._small(evidence, ratios)
        if small.value >= small.limit or evidence.falls():
            return
        value = small.value
        largest = np.nan_to_num(ratios.values).max(0)
        size = times(value, is_estimate=ratios.is_estimate)
        text = f"no optimizer step changes a weight by more than {size} of its norm,"
        if small.is_median:
            text = f"the median update is {size} of the weights,"
            if evidence.losses:
                text += f" and {_first_loss(evidence)},"
        parameter = ratios.names[int(np.nanargmax(largest))]
        known = _explained(evidence)
        yield Finding(
            message=f"{text} since step {ratios.steps[0]}; the most in `{parameter}`",
            since_step=ratios.steps[0],
            parameter=parameter,
            value=value,
            healthy=f"{percent(small.limit)} to 4 %",
            meaning=known.meaning,
            advice=known.advice,
            cure=known.cure,
        )

    def _small(self, evidence: Evidence, ratios: Ratios) -> Small:
        """How small the updates are, and below which limit that is reported."""
        median = float(np.nanmedian(ratios.values))
        idle = self._idle_limit(evidence, ratios)
        if median < idle:
            return Small(median, idle, is_median=True)
        return Small(float(np.nanmax(ratios.values)), self.low, is_median=False)

    def _idle_limit(self, evidence: Evidence, ratios: Ratios) -> float:
        """Limit of the median ratio, which depends on the loss; 0 if it says nothing."""
        if ratios.steps[-1] - ratios.steps[0] < thresholds.UPDATE_SPAN.value:
            return 0.0
        if evidence.losses:
            if evidence.stays_late(thresholds.STAYS.value):
                return self.idle
            return self.low if evidence.stays_late(thresholds.HARDLY_FALLS.value) else 0.0
        most = np.nanmax(ratios.median, initial=0.0)
        return self.idle if most < self.idle else 0.0


class _Explanation(NamedTuple):
    """Meaning, advice and cure, as in `Finding`."""

    meaning: str
    advice: str
    cure: str | None = None


def _explained(evidence: Evidence) -> _Explanation:
    """Why updates are small."""
    norm = _clipping_norm(evidence)
    response = evidence.first_response
    if norm is not None:
        return _Explanation(
            f"The norm of all gradients is {norm:.2g} at every logged step: they are clipped to it",
            "Clip the gradients to a larger norm, such as 1, before the learning rate is changed",
            cure="",  # nothing is clipped in a copy's training
        )
    if thresholds.FIRST_RESPONSE.value < response < math.inf:
        return _Explanation(
            "The weights are large beside their updates: the first layer's output has a standard "
            f"deviation of {rounded(response)}",
            "Use the layers' own initialization, and scale the inputs",
            cure="new_weights",
        )
    return _Explanation(
        "At this rate training takes very long, or stands still",
        "Raise the learning rate, unless a tiny rate is intended",
    )


def _clipping_norm(evidence: Evidence) -> float | None:
    """The norm of all gradients if it is the same at every logged step, as if clipped to it."""
    total = evidence.gradient_norms.get(tags.TOTAL)
    if total is None or len(total.values) < thresholds.LOGGED_STEPS.value:
        return None
    largest = total.values.max()
    if not 0 < largest < thresholds.CLIPPED.value * total.values.min():
        return None
    return float(largest)


def _first_loss(evidence: Evidence) -> str:
    """The loss of the first output of which it is known, none of which falls."""
    name, losses = next(iter(evidence.losses_of_outputs.items()))
    of_output = f" of{quoted(name)}" if name else ""
    return f"the loss{of_output} hardly falls ({losses[0]:.3g}, later {late_loss(losses):.3g})"
