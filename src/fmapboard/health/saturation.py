"""Activations inside the network that are at their ends, and outputs of it that are."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fmapboard.formats.tab_records import Floats
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, OutputSteps, lasting, spell
from fmapboard.health.finding import whole_percent
from fmapboard.health.table import HealthRow


class _End(NamedTuple):
    """Where an activation saturates.

    Attributes:
        beyond: magnitude of an input beyond which it does.
        text: its outputs there.
    """

    beyond: float
    text: str


_ENDS = {
    "Tanh": _End(thresholds.TANH_SATURATED.value, "±0.99"),
    "Sigmoid": _End(thresholds.SIGMOID_SATURATED.value, "0.01 and 0.99"),
}
"""Kind of an activation -> where it saturates."""


class SaturatedLayer(NamedTuple):
    """A layer whose activation is saturated.

    Attributes:
        row: the layer.
        kind: of the activation.
        since: the logged step since which it is.
        share: of its outputs that are at an end, at the newest step.
        end: where its outputs are then.
    """

    row: HealthRow
    kind: str
    since: int
    share: float
    end: str


def saturated_layers(evidence: Evidence, least_share: float, least: int) -> list[SaturatedLayer]:
    """Saturated layers but the last one, in network order.

    Args:
        evidence: of the run.
        least_share: share of the outputs at an end from which a layer counts.
        least: number of logged steps at the end of the run that must all have it.
    """
    table = evidence.layers
    layers = []
    for row in evidence.weighted_layers[:-1]:
        kind = next(iter(row.facts.followed_by), "")  # else, a normalization is between
        if kind not in _ENDS:
            continue
        index = table.rows.index(row)
        mean = table.columns["mean"][:, index]
        std = table.columns["std"][:, index]
        shares = _beyond(_ENDS[kind].beyond, mean, std)  # [steps]
        others = np.flatnonzero(~(shares >= least_share))
        first = int(others[-1]) + 1 if others.size else 0
        may_be_gate = kind != "Tanh" and first > 0
        if len(shares) - first >= least and not may_be_gate:
            share = float(shares[-1])
            end = _ENDS[kind].text
            layers.append(SaturatedLayer(row, kind, table.steps[first], share, end))
    return layers


def _beyond(end: float, means: Floats, stds: Floats) -> Floats:
    """[S]: share of normally distributed values whose magnitude is above ``end``."""
    shares = []
    for mean, std in zip(means.tolist(), stds.tolist(), strict=True):
        width = max(std, np.finfo(np.float32).tiny) * math.sqrt(2)
        below = math.erf((end + mean) / width) + math.erf((end - mean) / width)
        shares.append(1.0 - below / 2)
    return np.array(shares)


class OutputAtEnd(NamedTuple):
    """An output that is at an end of its range.

    Attributes:
        since: the first logged step at which it is.
        when: all of them, in words.
        pulled: share of its values that are at an end, and pulled further by the loss; None if all
            are near one end.
        low: its smallest value at the newest step.
        high: its largest value there.
    """

    since: int
    when: str
    pulled: float | None
    low: float
    high: float

    def text(self, name: str) -> str:
        """The finding in one sentence.

        Args:
            name: of the output, see `evidence.quoted`.
        """
        ends = f"an end of its range, {self.low:.3g} to {self.high:.3g},"
        if self.pulled is None:
            return f"the output{name} goes to {ends} {self.when}"
        share = f"{whole_percent(self.pulled)} of the values of the output{name}"
        return f"{share} are at {ends} and the loss pulls them further, {self.when}"


def output_at_end(
    steps: OutputSteps, pulled: float, end: float, away: float, least: int
) -> OutputAtEnd | None:
    """Since when an output is at an end of its range; None if it is not.

    Args:
        steps: what is known of the output.
        pulled: share of its values that are at an end and pulled further, from which it is.
        end: magnitude beyond which all values are, with one sign.
        away: distance of the targets in units of the largest output.
        least: number of logged steps at the end of the run that must all have it.
    """
    last = list(steps.values())[-1]
    share = _pulled_share(steps, pulled, least)
    if share is not None:
        since, when = spell(steps, lambda output: output.pulled >= pulled)
        return OutputAtEnd(since, when, share, last.low, last.high)
    begin = _at_end_since(steps, end, away, least)
    if begin is None:
        return None
    return OutputAtEnd(begin, f"since step {begin}", None, last.low, last.high)


def _pulled_share(steps: OutputSteps, least_share: float, least: int) -> float | None:
    """Share of an output's values that are at an end and pulled further; None if they are too few.

    Args:
        steps: what is known of the output.
        least_share: share from which they are enough, in the median over the second half.
        least: number of logged steps at the end of the run that must all have it.
    """
    last = list(steps.values())[-1]
    late = max(least, len(steps) // 2)
    if late > len(steps) or last.rows_are == "probabilities" or not last.low < last.high:
        return None
    pulled = float(np.median([output.pulled for output in steps.values()][-late:]))
    if not pulled >= least_share:
        return None
    near = thresholds.AT_END.value
    ends = {round(end) for end in (last.low, last.high) if abs(end - round(end)) < near}
    return pulled if ends & {-1, 0, 1} else None


def _at_end_since(steps: OutputSteps, end: float, away: float, least: int) -> int | None:
    """Since when all values are near one end, or the targets beyond them; None if not so.

    Args:
        steps: what is known of the output.
        end: magnitude beyond which all values are, with one sign.
        away: distance of the targets in units of the largest output.
        least: number of logged steps at the end of the run that must all have it.
    """
    last = list(steps.values())[-1]
    if any(max(output.high, -output.low) > 1 for output in steps.values()):
        return None  # it is free
    since = lasting(steps, lambda output: max(output.low, -output.high) >= end, least)
    is_near = since is not None or max(last.high, -last.low) >= end
    if not is_near:
        return None
    if since is None or last.shape[1:2] in ((), (1,)):  # a single unit may be a critic's
        return lasting(steps, lambda output: output.away >= away, least)
    return since
