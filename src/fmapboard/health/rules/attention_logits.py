"""Logits of attention that grow beyond what softmax can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.record import NotRecorded, Series
from fmapboard.health.rule import Rule
from fmapboard.health.table import HealthRow, call_text


class Growth(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class AttentionLogitsCheck(Rule):
    """The largest logit of attention is out of the range of softmax, and grows at each logged step.

    It has at least doubled since the first logged step. Beyond 104, the weight of a token whose
    logit is 0 is 0 in float32, in which softmax is computed, also of half precision.

    Why it hurts: attention becomes that of a single token, which passes no gradient back, and
    large models then diverge (Dehghani et al. 2023 and Wortsman et al. 2024, section 3.1 of both).

    Silent: for large logits that do not grow, as those of some pretrained networks.

    Example: a learning rate that is too large for a transformer without normalized queries.

    Attributes:
        limit: the largest logit from which it is reported.
        growth: factor since the first logged step.
        least: number of logged steps at which it must be so.
    """

    limit: float = thresholds.SOFTMAX_RANGE.value
    growth: float = thresholds.LOGITS_GROWN.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "attention_logits"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="attention_logits")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        grown = [] if table.is_of_images else self._grown(evidence)
        if not grown:
            return
        first = min(grown, key=lambda growth: growth.since)
        more = ""
        if len(grown) > 1:
            layers = "layer" if len(grown) == 2 else "layers"
            more = f"; likewise in {len(grown) - 1} further {layers}"
        yield Finding(
            message=f"the largest logit of {call_text(table, first.row)} keeps growing, from "
            f"{rounded(first.first)} at the first step to {rounded(first.last)} at step "
            f"{table.steps[-1]}, out of the range of softmax since step {first.since}{more}",
            since_step=first.since,
            layer=first.row.facts.label,
            value=first.last,
            healthy=f"below {self.limit:.0f}",
            meaning="Attention becomes that of a single token, which passes no gradient to queries "
            "and keys",
            advice="Lower the learning rate or warm it up, or normalize queries and keys",
            picture=evidence.record.picture(first.row),
        )

    def _grown(self, evidence: Evidence) -> list[Growth]:
        """The layers whose largest logit keeps growing."""
        scalars = evidence.record.scalars.get(tags.ATTENTION_LOGIT)
        has_heads = any(row.facts.unit == "head" for row in evidence.layers.rows)
        if scalars is None:
            if has_heads:
                raise NotRecorded(f"the scalars {tags.ATTENTION_LOGIT}/…")
            return []
        found = []
        for row in evidence.layers.rows:
            series = scalars.get(f"{row.facts.label}/{tags.HIGHEST_HEAD}")
            since = None if series is None else self._since(series)
            if series is not None and since is not None:
                first = float(series.values[0])
                found.append(Growth(since, row, first, float(series.values[-1])))
        return found

    def _since(self, series: Series) -> int | None:
        """First of the newest steps at which a logit is out of range; None if it does not grow."""
        values = series.values
        newest = values[-self.least :]
        if len(newest) < self.least or not np.isfinite(values).all():
            return None
        is_growing = bool((np.diff(newest) > 0).all()) and newest[0] >= self.limit
        if not is_growing or values[-1] < self.growth * max(values[0], 1.0):
            return None
        inside = np.flatnonzero(values < self.limit)
        return int(series.steps[inside[-1] + 1 if len(inside) else 0])
