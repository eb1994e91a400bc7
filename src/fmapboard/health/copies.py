"""Channels that are copies of each other, as far as their statistics tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fmapboard.formats.overview import Flags
from fmapboard.formats.tab_records import Floats
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, is_weighted
from fmapboard.health.table import HealthRow


def copied_layers(evidence: Evidence, share: float, least: int) -> list[tuple[HealthRow, float]]:
    """The layers with enough copied channels, and the share of these.

    Args:
        evidence: of the run.
        share: share of the drawn channels that have a copy, from which a layer counts.
        least: number of channels that a layer must have.
    """
    copied = []
    for row in evidence.layers.rows:
        if row.facts.channels == 1:
            break
        statistics = evidence.record.first.get(row.facts.label)
        if statistics is None or not _has_weights(row, statistics):
            continue
        copied_channels = copied_share(statistics, least)
        if copied_channels >= share:
            copied.append((row, copied_channels))
    return copied


def _has_weights(row: HealthRow, statistics: Mapping[str, Floats]) -> bool:
    """True for layers that compute each unit with weights of its own, units and heads included.

    Of the two rows that are read per head, that of the largest logit is left out, and so are heads
    that attend to a single token, whose rows all have the same numbers.
    """
    if row.facts.unit == "head":
        is_sharp = bool((statistics["maximum"] >= thresholds.SINGLE_TOKEN.value).any())
        return row.facts.layer.endswith(".rows") and not is_sharp
    return is_weighted(row) or row.facts.unit == "unit"


def copied_share(statistics: Mapping[str, Floats], least: int) -> float:
    """Share of channels with the same statistics as another one, 0 to 1."""
    low = statistics["minimum"].astype(np.float64)
    high = statistics["maximum"].astype(np.float64)
    mean = statistics["mean"].astype(np.float64)
    std = statistics["std"].astype(np.float64)
    if len(low) < least or not np.isfinite([low, high, mean, std]).all():
        return 0.0
    size = high - low
    varies = size > thresholds.CONSTANT_CHANNEL.value * (high.max() - low.min())
    shape = np.stack([size, mean - low, std], axis=1)  # [channels, 3]
    copies = int(_twins(shape[varies]).sum())
    if not copies or (varies.all() and _is_for_pixel_shuffle(shape)):
        return 0.0
    return copies / len(size)


def _same(first: Floats, second: Floats) -> Flags:
    """bool [...]: two channels, each [..., 3], have the same numbers."""
    same: Flags = np.abs(first - second).max(-1) <= thresholds.EQUAL.value * first[..., 0]
    return same


def _twins(shape: Floats) -> Flags:
    """bool [channels]: another one has the same numbers, given all of them, [channels, 3]."""
    key = shape.sum(1)  # of copies, it differs by at most 3 times the tolerance
    tolerance = shape.shape[1] * thresholds.EQUAL.value
    order = np.argsort(key)
    ranked = shape[order]
    key = key[order]
    found = np.zeros(len(shape), bool)
    for lag in range(1, min(len(shape), thresholds.NEAREST.value + 1)):
        same = _same(ranked[:-lag], ranked[lag:])
        found[order[:-lag][same]] = True
        found[order[lag:][same]] = True
        are_apart = key[lag:] - key[:-lag] > tolerance * ranked[:-lag, 0]
        if found.all() or are_apart.all():
            break
    return found


def _is_for_pixel_shuffle(shape: Floats) -> bool:
    """True if channels [channels, 3] are equal in groups of 4, 9 or 16 neighbours, and only so."""
    for side in thresholds.PIXEL_SHUFFLE:
        firsts = shape[:: side**2]
        repeated = np.repeat(firsts, side**2, axis=0)[: len(shape)]
        is_grouped = bool(_same(repeated, shape).all())
        if is_grouped and len(firsts) > 1 and not _twins(firsts).any():
            return True
    return False
