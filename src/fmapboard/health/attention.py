"""Facts of attention: heads that do not choose, logits that grow, and tokens without a place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, late_loss, since_share
from fmapboard.health.labels import labels_of
from fmapboard.health.record import NotRecorded, Series
from fmapboard.health.table import HealthRow, HealthTable


class GrowingLogit(NamedTuple):
    """A layer whose largest logit keeps growing.

    Attributes:
        since: the logged step since which it is out of range.
        row: the layer.
        first: its largest logit at the first logged step.
        last: likewise, at the newest step.
    """

    since: int
    row: HealthRow
    first: float
    last: float


def growing_logits(
    evidence: Evidence, limit: float, growth: float, least: int
) -> list[GrowingLogit]:
    """The layers whose largest logit is out of range, and grows at each of the newest steps.

    Args:
        evidence: of the run.
        limit: the largest logit from which it counts.
        growth: factor by which it has grown since the first logged step.
        least: number of logged steps at which it must be so.

    Raises:
        NotRecorded: there is attention whose logits are not recorded.
    """
    if evidence.layers.is_of_images:
        return []
    scalars = evidence.record.scalars.get(tags.ATTENTION_LOGIT)
    if scalars is None:
        if has_heads(evidence):
            raise NotRecorded(f"the scalars {tags.ATTENTION_LOGIT}/…")
        return []
    found = []
    for row in evidence.layers.rows:
        series = scalars.get(f"{row.facts.label}/{tags.HIGHEST_HEAD}")
        since = None if series is None else _growing_since(series, limit, growth, least)
        if series is not None and since is not None:
            first = float(series.values[0])
            found.append(GrowingLogit(since, row, first, float(series.values[-1])))
    return found


def _growing_since(series: Series, limit: float, growth: float, least: int) -> int | None:
    """First of the newest steps at which a logit is out of range; None if it does not grow."""
    values = series.values
    newest = values[-least:]
    if len(newest) < least or not np.isfinite(values).all():
        return None
    is_growing = bool((np.diff(newest) > 0).all()) and newest[0] >= limit
    if not is_growing or values[-1] < growth * max(values[0], 1.0):
        return None
    inside = np.flatnonzero(values < limit)
    return int(series.steps[inside[-1] + 1 if len(inside) else 0])


class DeadHeads(NamedTuple):
    """A layer of attention with dead heads.

    Attributes:
        since: the logged step since which they are dead.
        share: share of its heads.
        row: the layer.
    """

    since: int
    share: float
    row: HealthRow


def dead_heads(table: HealthTable, span: int) -> list[DeadHeads]:
    """The layers with heads that are dead at the newest steps, the earliest first.

    Args:
        table: of all layers.
        span: number of training steps for which they must have been so.
    """
    found = []
    for index, row in enumerate(table.rows):
        share = _dead_share(table, index)
        if share == 0:
            continue
        since = since_share(table, index, share, table.steps[-1])
        if table.steps[-1] - since >= span:
            found.append(DeadHeads(since, share, row))
    return sorted(found, key=lambda heads: heads.since)


def _dead_share(table: HealthTable, index: int) -> float:
    """Share of a layer's heads that are dead at the newest steps; 0 of other layers."""
    if table.rows[index].facts.unit != "head":
        return 0.0
    lasting = float(table.columns["dead_lasting"][-1, index])
    return lasting if lasting > thresholds.SHARE_ROUNDING.value else 0.0


def has_sharp_head(evidence: Evidence, row: HealthRow) -> bool:
    """True if the sharpest head of a layer attends to one token at the newest step."""
    lowest = evidence.record.scalars.get(tags.ATTENTION_ENTROPY, {}).get(
        f"{row.facts.label}/{tags.LOWEST_HEAD}"
    )
    return lowest is not None and float(lowest.values[-1]) <= thresholds.ONE_HOT_HEAD.value


def has_heads(evidence: Evidence) -> bool:
    """True if rows of attention are known of some layer."""
    return any(row.facts.unit == "head" for row in evidence.layers.rows)


def guesses_tokens(evidence: Evidence, near: float) -> bool:
    """True if an output with ``attends_alike`` is late in the run no better than a guess.

    Args:
        evidence: of the run.
        near: how far its loss is below that of the frequency of the labels at most.
    """
    for name, steps in evidence.outputs.items():
        losses = evidence.losses_of_outputs.get(name)
        labels = labels_of(steps)
        if losses is None or labels is None or not list(steps.values())[-1].attends_alike:
            continue
        if late_loss(losses) >= (1 - near) * labels.entropy:
            return True
    return False
