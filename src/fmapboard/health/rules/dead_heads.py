"""Heads of attention that do not choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.attention import dead_heads, has_sharp_head
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text

_UNIFORM = (
    "attend to all tokens alike",
    "Their queries or keys are 0, or the tokens are all alike: they compute a mean",
    "Check the initial or loaded weights of queries and keys, the normalization in front of them "
    "and the scale of the logits",
)
_ONE_HOT = (
    "attend to a single token",
    "Their logits are so far apart that softmax is 0 or 1, which passes no gradient to queries and "
    "keys",
    "Divide the logits by the square root of the features of a head, check the initial weights of "
    "queries and keys, or normalize both",
)


@dataclass(frozen=True, slots=True)
class DeadHeadsCheck(Rule):
    """The same heads attend to all tokens alike, or to one, at four logged steps in a row.

    It is so for all rows that are read, in all images. A head counts as attending to one token if
    its logits are beyond the range of softmax too.

    Why it hurts: such a head passes next to no gradient to its queries and keys, so it hardly
    changes. It computes a mean over the tokens, or copies a token that initial weights have chosen.

    Silent: for sharp heads of usual logits, as those that attend to the token before; and during
    the first 50 steps; and for heads that would attend alike to all tokens, but for hidden ones.

    Example: queries and keys whose initial weights are 30 times too large.

    Attributes:
        span: number of training steps for which a head must have been so.
    """

    span: int = thresholds.DEAD_HEADS_SPAN.value
    kind: ClassVar[str] = "dead_heads"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="dead_heads")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        if table.is_of_images:
            return
        found = dead_heads(table, self.span)
        if not found:
            evidence.check_attention()
            return
        first = found[0]
        row = first.row
        count = round(first.share * row.facts.channels)
        attend, meaning, advice = _ONE_HOT if has_sharp_head(evidence, row) else _UNIFORM
        if count == 1:
            attend = attend.replace("attend", "attends")
        more = ""
        if len(found) > 1:
            layers = "layer" if len(found) == 2 else "layers"
            more = f"; the same of heads of {len(found) - 1} further {layers}"
        yield Finding(
            message=f"{count} of {row.facts.channels} heads of {call_text(table, row)} {attend} "
            f"since step {first.since}{more}",
            since_step=first.since,
            layer=row.facts.label,
            value=first.share,
            healthy="0",
            meaning=meaning,
            advice=advice,
            picture=evidence.record.picture(row),
        )
