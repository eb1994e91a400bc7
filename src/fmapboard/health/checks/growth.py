"""Signals that vanish or explode through the layers, or over the steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.health.finding import Finding
from fmapboard.health.record import BuiltInCheck, NotRecorded, RunRecord, first_of, over_steps
from fmapboard.health.table import HealthRow, call_text, is_normalized

_SMALL = (
    "The first layers hardly learn: saturating activations, too small weights, or a deep network "
    "without normalization or skip connections",
    "Use another initialization, normalization layers or skip connections",
)
_ZERO = (
    "No gradient reaches the first layers: an operation whose gradient is 0, such as rounding, a "
    "threshold, clamping out of range or a weight of 0, or activations that are all off",
    "Find the operation behind these layers whose gradient is 0",
)
_AMPLIFIED = (
    "Each layer amplifies the gradient on its way back",
    "Use another initialization or normalization layers, or clip the gradients",
)
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class VanishingCheck(BuiltInCheck):
    """Gradients of the first layers far below those of the last ones, in the first half of the run.

    Attributes:
        ratio: largest ratio that is reported (see `gradient_ratios`).
        least: number of logged steps at which it must be so.
    """

    ratio: float = 1e-4
    least: int = 3
    kind: ClassVar[str] = "vanishing"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        found = gradient_ratios(record, self.least)
        if found is None or not found.early.max() < self.ratio:
            return
        yield found.finding("0.05 or more", *(_SMALL if found.early.any() else _ZERO))


@dataclass(frozen=True, slots=True)
class ExplodingCheck(BuiltInCheck):
    """Activations that grow through the layers or over the steps, or gradients towards the input.

    Attributes:
        growth: factor by which a layer's largest magnitude exceeds that at the first logged step,
            or the median layer's at that step if its own was smaller: a layer that is initialized
            near zero may grow to the magnitudes of the others.
        depth: factor between the standard deviations of the last and the first drawn layer at the
            first logged step, of those with no normalization between them. Images of little
            contrast make those of the first layers small: their responses to images of standard
            deviation 1 count.
        gradients: ratio of the gradients of the first layers to those of the last ones.
    """

    growth: float = 1000.0
    depth: float = 15.0
    gradients: float = 1e4
    kind: ClassVar[str] = "exploding"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        record.layers()
        rules = self._over_steps, self._over_layers, self._backward
        yield from first_of(rule(record) for rule in rules)

    def _over_steps(self, record: RunRecord) -> Finding | None:
        table = record.layers()
        if table.is_of_images:
            return None
        magnitude = table.magnitudes
        with np.errstate(all="ignore"):
            grown = magnitude.astype(np.float64) / _usual(magnitude[0])  # [steps, layers]
            grown[~np.isfinite(grown)] = 0.0
        is_large = (grown >= self.growth) & (magnitude >= 1.0)
        if not is_large.any():
            return None
        step = int(is_large.any(1).argmax())
        at = int(is_large[step].argmax())
        row, value = table.rows[at], float(grown[:, at].max())
        return Finding(
            message=f"magnitudes in {call_text(table, row)} grew {value:.2g}-fold since step "
            f"{table.steps[0]}, to {float(np.nanmax(magnitude[:, at])):.2g} "
            f"({self.growth:.0f}-fold or more from step {table.steps[step]} on)",
            since_step=table.steps[step],
            layer=row.facts.label,
            value=value,
            healthy=f"less than {self.growth:.0f}-fold",
            meaning="The weights grow from step to step: the learning rate is too high, or the "
            "loss has no lower bound",
            advice="Lower the learning rate, or clip the gradients",
            picture=record.picture(row),
        )

    def _over_layers(self, record: RunRecord) -> Finding | None:
        table = record.layers()
        parts: list[list[tuple[HealthRow, float]]] = [[]]
        for each, std in zip(table.rows, table.columns["std"][0].tolist(), strict=True):
            if math.isfinite(std) and each.facts.kernel_shape:
                parts[-1].append((each, std))
            if is_normalized(each):
                parts.append([])
        received = record.network_input.get(table.steps[0], {}).get("std", 1.0)
        grown = [
            (part, part[-1][1] / part[0][1] * (min(received, 1.0) if part is parts[0] else 1.0))
            for part in parts
            if len(part) >= 3 and part[0][1] > 0
        ]
        part, value = max(grown, key=lambda one: one[1], default=([], 0.0))
        if value < self.depth:
            return None
        (first, _), (row, _) = part[0], part[-1]
        return Finding(
            message=f"the standard deviation of the activations grows {value:.2g}-fold from "
            f"{call_text(table, first)} to {call_text(table, row)} "
            f"at {table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=row.facts.label,
            value=value,
            healthy=f"less than {self.depth:.0f}-fold",
            meaning="The initial weights are too large: each layer amplifies the signal",
            advice="Scale the initial weights with the number of inputs (Kaiming or Xavier), "
            "or add normalization layers",
            picture=record.picture(row),
        )

    def _backward(self, record: RunRecord) -> Finding | None:
        try:
            found = gradient_ratios(record, 3)
        except NotRecorded:
            return None
        if found is None or not found.early.min() > self.gradients:
            return None
        return found.finding(f"less than {self.gradients:.0e}", *_AMPLIFIED)


def _usual(magnitudes: Floats) -> Floats:
    """The larger of each layer's magnitude and the median layer's; NaN where it is 0 or unknown."""
    known = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    median = float(np.median(known)) if known.size else math.nan
    return np.where(magnitudes > 0, np.fmax(magnitudes, median), np.nan).astype(np.float64)


_LEAST_WEIGHTS = 40
"""Weights of a layer below which it is left out."""
_LEAST_LAYERS = 4


class GradientRatios(NamedTuple):
    """The ratios at the logged steps of the first half of a run.

    Attributes:
        since: the first of these steps.
        early: finite ratios of at least 0, one per step.
        first: the first layer in network order.
    """

    since: int
    early: Floats
    first: str

    def finding(self, healthy: str, meaning: str, advice: str) -> Finding:
        """What a check says of them."""
        value, size = float(np.median(self.early)), "are exactly 0"
        if self.early.any():
            size = f"are {value:.0e} times those of the last ones"
        return Finding(
            message="gradients per weight of the first layers, "
            f"from `{self.first}` on, {size} since step {self.since}",
            since_step=self.since,
            layer=self.first,
            value=value,
            healthy=healthy,
            meaning=meaning,
            advice=advice,
        )


def gradient_ratios(record: RunRecord, least: int) -> GradientRatios | None:
    """The gradient per weight of the first layers, divided by that of the last ones.

    It is the larger one of the first two layers with kernels, divided by the largest one of the
    last three; the gradient per weight is its 2-norm divided by the square root of the number of
    weights. None if fewer than four such layers of at least 40 weights have gradients.

    Args:
        record: the record of the model.
        least: number of logged steps; None is returned if fewer have a ratio.

    Raises:
        NotRecorded: the run has no overview series, or no gradient norms.
    """
    norms = record.group(tags.GRADIENT_NORM)
    layers = []
    for row in record.weighted_layers():
        weights = math.prod(row.facts.kernel_shape or ())
        series = norms.get(f"{row.facts.layer}.weight")
        if series is not None and weights >= _LEAST_WEIGHTS:
            layers.append((row.facts.layer, series, math.sqrt(weights)))
    if len(layers) < _LEAST_LAYERS:
        return None
    steps, norm = over_steps(series for _, series, _ in layers)
    norm /= [root for _, _, root in layers]  # [S, layers], per weight
    with np.errstate(all="ignore"):
        ratios = norm[:, :2].max(1) / norm[:, -3:].max(1)
    known = np.isfinite(ratios) & ~np.isnan(norm).any(1)
    steps, ratios = steps[known], ratios[known]
    if len(steps) < max(least, 1):
        return None
    return GradientRatios(int(steps[0]), ratios[: max(least, len(steps) // 2)], layers[0][0])
