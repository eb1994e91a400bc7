"""Signals that vanish or explode through the layers, or over the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.health.finding import Finding
from fmapboard.health.record import NotRecorded, RunRecord, Steps
from fmapboard.health.table import call_text

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
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class VanishingCheck:
    """Gradients of the first layers far below those of the last ones, in the first half of the run.

    Attributes:
        ratio: largest ratio that is reported (see `gradient_ratios`).
        least: number of logged steps at which it must be so.
    """

    ratio: float = 1e-4
    least: int = 3
    kind: ClassVar[str] = "vanishing"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        found = gradient_ratios(record)
        if found is None or len(found.steps) < self.least:
            return []
        early = found.values[: max(self.least, len(found.values) // 2)]
        if not early.max() < self.ratio:
            return []
        value = float(np.median(early))
        size = f"are {value:.0e} times those of the last ones" if early.any() else "are exactly 0"
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message="gradients per weight of the first layers, "
                f"from `{found.first}` on, {size} since step {found.steps[0]}",
                since_step=int(found.steps[0]),
                layer=found.first,
                value=value,
                healthy="0.05 or more",
                meaning=_SMALL[0] if early.any() else _ZERO[0],
                advice=_SMALL[1] if early.any() else _ZERO[1],
            )
        ]


@dataclass(frozen=True, slots=True)
class ExplodingCheck:
    """Activations that grow through the layers or over the steps, or gradients towards the input.

    Attributes:
        growth: factor by which a layer's largest magnitude exceeds that at the first logged step,
            or the median layer's at that step if its own was smaller: a layer that is initialized
            near zero may grow to the magnitudes of the others.
        depth: factor between the standard deviations of the last and the first drawn layer at the
            first logged step.
        gradients: ratio of the gradients of the first layers to those of the last ones.
    """

    growth: float = 1000.0
    depth: float = 15.0
    gradients: float = 1e4
    kind: ClassVar[str] = "exploding"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        record.layers()
        return self._over_steps(record) or self._over_layers(record) or self._backward(record)

    def _over_steps(self, record: RunRecord) -> list[Finding]:
        table = record.layers()
        if table.is_of_images:
            return []
        magnitude = np.fmax(np.abs(table.columns["minimum"]), np.abs(table.columns["maximum"]))
        with np.errstate(all="ignore"):
            grown = magnitude.astype(np.float64) / _usual(magnitude[0])  # [steps, layers]
            grown[~np.isfinite(grown)] = 0.0
        is_large = (grown >= self.growth) & (magnitude >= 1.0)
        if not is_large.any():
            return []
        step = int(is_large.any(1).argmax())
        at = int(is_large[step].argmax())
        row, value = table.rows[at], float(grown[:, at].max())
        return [
            Finding(
                kind=self.kind,
                class_="note",
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
        ]

    def _over_layers(self, record: RunRecord) -> list[Finding]:
        table = record.layers()
        known = [
            (row, float(std))
            for row, std in zip(table.rows, table.columns["std"][0], strict=True)
            if math.isfinite(std) and row.facts.kernel_shape
        ]
        if len(known) < 3 or known[0][1] <= 0:
            return []
        row, value = known[-1][0], known[-1][1] / known[0][1]
        if value < self.depth:
            return []
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message=f"the standard deviation of the activations grows {value:.2g}-fold from "
                f"{call_text(table, known[0][0])} to {call_text(table, row)} "
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
        ]

    def _backward(self, record: RunRecord) -> list[Finding]:
        try:
            found = gradient_ratios(record)
        except NotRecorded:
            return []
        if found is None or len(found.steps) < 3:
            return []
        early = found.values[: max(3, len(found.values) // 2)]
        if not early.min() > self.gradients:
            return []
        value = float(np.median(early))
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message=f"gradients per weight of the first layers, from `{found.first}` on, are "
                f"{value:.0e} times those of the last ones since step {found.steps[0]}",
                since_step=int(found.steps[0]),
                layer=found.first,
                value=value,
                healthy=f"less than {self.gradients:.0e}",
                meaning="Each layer amplifies the gradient on its way back",
                advice="Use another initialization or normalization layers, or clip the gradients",
            )
        ]


def _usual(magnitudes: Floats) -> Floats:
    """The larger of each layer's magnitude and the median layer's; NaN where it is 0 or unknown."""
    known = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    median = float(np.median(known)) if known.size else math.nan
    return np.where(magnitudes > 0, np.fmax(magnitudes, median), np.nan).astype(np.float64)


_LEAST_WEIGHTS = 40
"""Weights of a layer below which it is left out."""
_LEAST_LAYERS = 4


class GradientRatios(NamedTuple):
    """The ratio at each logged step; ``first`` is the first layer in network order.

    ``steps`` and ``values`` are [S]; ``values`` are finite and at least 0.
    """

    steps: Steps
    values: Floats
    first: str


def gradient_ratios(record: RunRecord) -> GradientRatios | None:
    """The gradient per weight of the first layers, divided by that of the last ones.

    It is the larger one of the first two layers with kernels, divided by the largest one of the
    last three; the gradient per weight is its 2-norm divided by the square root of the number of
    weights. None if fewer than four such layers of at least 40 weights have gradients.

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
    steps = np.unique(np.concatenate([series.steps for _, series, _ in layers]))
    table = np.full((len(steps), len(layers)), np.nan)
    for column, (_, series, root) in enumerate(layers):
        table[np.searchsorted(steps, series.steps), column] = series.values / root
    known = ~np.isnan(table).any(1) & (table[:, -3:].max(1) > 0)
    if not known.any():
        return None
    table = table[known]
    with np.errstate(all="ignore"):
        ratios = table[:, :2].max(1) / table[:, -3:].max(1)
    finite = np.isfinite(ratios)
    return GradientRatios(steps[known][finite], ratios[finite], layers[0][0])
