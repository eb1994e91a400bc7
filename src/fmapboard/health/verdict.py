"""What is said of a run in which nothing was found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Literal

from fmapboard.formats import tags
from fmapboard.health.checks.weights import UpdateRatioCheck
from fmapboard.health.table import HealthTable

Update = tuple[str, int, float]
"""Tag of an update ratio, a step, and |Δw| / |w| of the optimizer step."""


def is_update_of_weights(tag: str) -> bool:
    """True for the update ratios of weights; biases, which may start at 0, say nothing."""
    group, _, parameter = tags.split(tag)[1].partition("/")
    return group == tags.UPDATE_RATIO and parameter.rpartition(".")[2] == "weight"


def nothing_found(
    table: HealthTable, updates: Iterable[Update]
) -> tuple[Literal["well", "large_updates"], str]:
    """A class and one line: what was looked through, and how much the weights moved.

    Args:
        table: of the run.
        updates: those for which `is_update_of_weights` holds, in any order.

    Returns:
        ``large_updates`` if a ratio is larger than the check of update ratios takes for healthy,
        otherwise ``well``; and the line.
    """
    layers, columns = len(table.rows), len(table.steps)
    kind = "image" if table.is_of_images else "step"
    text = f"Nothing found in {_counted(layers, 'layer')} × {_counted(columns, kind)}"
    known = [update for update in updates if math.isfinite(update[2])]
    if not known:
        return "well", text
    tag, step, most = max(known, key=lambda update: update[2])
    usual = median(value for *_, value in known)
    model, rest = tags.split(tag)
    name = rest.partition("/")[2]
    name = f"{model}: {name}" if model else name
    figures = f"median update {_percent(usual)}, largest {_percent(most)} (`{name}`, step {step})"
    return ("large_updates" if most > UpdateRatioCheck().high else "well"), f"{text}: {figures}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _percent(share: float) -> str:
    """A share in percent with two digits: "0.84 %", "57 %", "1,300 %"."""
    value = 100 * share
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f} %"
    return f"{value:.2g} %" if value >= 1e-4 or value == 0 else f"{value:.1e} %"
