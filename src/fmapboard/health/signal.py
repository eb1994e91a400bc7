"""How activations fade or grow from layer to layer, between normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, is_weighted
from fmapboard.health.table import HealthRow, HealthTable, is_normalized


class Change(NamedTuple):
    """How much the activations grow or fade over a stretch of layers."""

    first: HealthRow
    last: HealthRow
    factor: float


def faded_stretch(evidence: Evidence, share: float) -> Change | None:
    """The first stretch of layers over which the standard deviation of a channel fades.

    At the first logged step, in the median over the channels.

    Args:
        evidence: of the run.
        share: largest share that is left of it at the last layer of the stretch.
    """
    table = evidence.layers
    stds = []
    for row in table.rows:
        statistics = evidence.record.first.get(row.facts.label)
        if statistics is None or not is_weighted(row):
            stds.append(math.nan)
        else:
            stds.append(float(np.median(statistics["std"])))
    for stretch in _stretches(table, stds):
        first, most = stretch[0]
        last, std = stretch[-1]
        if 0 < std <= share * most:
            return Change(first, last, most / std)
    return None


def growth_over_layers(evidence: Evidence) -> Change | None:
    """The stretch of layers over which the activations grow most, at the first logged step."""
    table = evidence.layers
    stds = []
    for row, std in zip(table.rows, table.columns["std"][0].tolist(), strict=True):
        stds.append(std if is_weighted(row) else math.nan)
    known = np.flatnonzero(np.isfinite(stds))
    first_layer = table.rows[int(known[0])] if known.size else None
    received = evidence.record.network_input.get(table.steps[0], {}).get("std", 1.0)
    most: Change | None = None
    for stretch in _stretches(table, stds):
        first, std = stretch[0]
        last, last_std = stretch[-1]
        factor = last_std / std
        if first is first_layer:  # its response to images of standard deviation 1
            factor *= min(received, 1.0)
        if most is None or factor > most.factor:
            most = Change(first, last, factor)
    return most


def _stretches(table: HealthTable, stds: Sequence[float]) -> list[list[tuple[HealthRow, float]]]:
    """Three layers or more in a row with no normalization between them, and their numbers.

    Args:
        table: of all layers.
        stds: one number per row; rows with NaN are left out.
    """
    parts: list[list[tuple[HealthRow, float]]] = [[]]
    for row, std in zip(table.rows, stds, strict=True):
        if math.isfinite(std):
            parts[-1].append((row, std))
        if is_normalized(row):
            parts.append([])
    least = thresholds.STRETCH.value
    return [part for part in parts if len(part) >= least and part[0][1] > 0]
