"""Logits of attention that grow beyond what softmax can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.attention import growing_logits
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text


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
        grown = growing_logits(evidence, self.limit, self.growth, self.least)
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
