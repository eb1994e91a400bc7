"""Attention whose softmax is not over the keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SoftmaxOverQueriesCheck(Rule):
    """The softmax of attention is over the queries or the heads, so that rows do not sum to 1.

    Why it hurts: what a token receives is no mean of the values: some receive next to nothing,
    others a multiple. The network learns, and less than it could.

    It is attention if there are as many queries as keys, and a product with the values sums over
    the last axis of what the softmax returns.

    Silent: where a layer takes several softmaxes, as linear attention and that which normalizes
    queries and keys in turn; where there are not as many keys as queries, or the weights are
    normalized again, as in slot attention. Where attention is not seen, the check is listed as not
    checked.

    Example: ``logits.softmax(-2)`` for logits [N, heads, queries, keys].

    Attributes:
        off: how far the sum of a row is from 1.
        least: number of logged steps.
    """

    off: float = thresholds.SUM_OFF_ONE.value
    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "softmax_over_queries"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        calls = Counter(row.facts.layer for row in evidence.layers.rows)
        newest = evidence.newest.off_one
        found = [label for label, off in newest.items() if off >= self.off and calls[label] == 1]
        if not found:
            evidence.check_attention()
            return
        first = found[0]
        steps = [step for step, facts in evidence.facts.items() if first in facts.off_one]
        if len(steps) < self.least:
            return
        yield Finding(
            message=f"the softmax of attention is not over the keys, so the sum of a row is up to "
            f"{rounded(newest[first])} away from 1: {named(found)}",
            since_step=steps[0],
            layer=first,
            value=newest[first],
            healthy="0",
            meaning="The softmax is over the queries or the heads: what a token receives is no "
            "mean of the values",
            advice="Take the softmax over the last axis of logits [..., queries, keys]",
        )
