"""Activations inside the network that are at their ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats.tab_records import Floats
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.rule import Rule
from fmapboard.health.table import HealthRow, call_text


class End(NamedTuple):
    """Where an activation saturates.

    Attributes:
        beyond: magnitude of an input beyond which it does.
        text: its outputs there.
    """

    beyond: float
    text: str


_ENDS = {
    "Tanh": End(thresholds.TANH_SATURATED.value, "±0.99"),
    "Sigmoid": End(thresholds.SIGMOID_SATURATED.value, "0.01 and 0.99"),
}
"""Kind of an activation -> where it saturates."""


class Saturated(NamedTuple):
    """A layer whose activation is saturated: since which step, and for which share of outputs."""

    row: HealthRow
    kind: str
    since: int
    share: float


@dataclass(frozen=True, slots=True)
class SaturatedCheck(Rule):
    """Tanh and sigmoids inside the network most of whose outputs are at their ends.

    That is estimated from mean and standard deviation of the layer in front, as if its values had a
    normal distribution, at the newest four logged steps.

    Why it hurts: saturated outputs pass hardly any gradient.

    Silent: for the last layer with kernels, whose answer it is, and for sigmoids that were not
    saturated at the start: gates may learn to open and close.

    Example: images from 0 to 255 in front of a layer with a tanh.

    Attributes:
        share: share of the outputs beyond 0.99 (sigmoids: also below 0.01) from which it is
            reported.
        least: number of logged steps at the end of the run that must all have it.
    """

    share: float = thresholds.SATURATED_SHARE.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "saturated"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="saturated")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        if len(table.steps) < self.least or table.is_of_images:
            return
        layers = self._layers(evidence)
        if not layers:
            return
        row, kind, since, share = layers[0]
        more = f"; the same behind {len(layers) - 1} further layers" if len(layers) > 1 else ""
        yield Finding(
            message=f"about {whole_percent(share)} of the outputs of the {kind} behind "
            f"{call_text(table, row)} are beyond {_ENDS[kind].text} since step {since}{more}",
            since_step=since,
            layer=row.facts.label,
            value=share,
            healthy=f"below {whole_percent(self.share)}",
            meaning="Saturated outputs pass hardly any gradient: weights or inputs are too large",
            advice="Check the scale of the inputs and of the initial weights, lower the "
            "learning rate, or put a normalization between the layer and its activation",
            picture=evidence.record.picture(row),
        )

    def _layers(self, evidence: Evidence) -> list[Saturated]:
        """Saturated layers but the last one, in network order."""
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
            others = np.flatnonzero(~(shares >= self.share))
            first = int(others[-1]) + 1 if others.size else 0
            may_be_gate = kind != "Tanh" and first > 0
            if len(shares) - first >= self.least and not may_be_gate:
                layers.append(Saturated(row, kind, table.steps[first], float(shares[-1])))
        return layers


def _beyond(end: float, means: Floats, stds: Floats) -> Floats:
    """[S]: share of normally distributed values whose magnitude is above ``end``."""
    shares = []
    for mean, std in zip(means.tolist(), stds.tolist(), strict=True):
        width = max(std, np.finfo(np.float32).tiny) * math.sqrt(2)
        below = math.erf((end + mean) / width) + math.erf((end - mean) / width)
        shares.append(1.0 - below / 2)
    return np.array(shares)
