"""Attention that sees padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, percent
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class AttendedPaddingCheck(Rule):
    """Tokens of padded texts give weight to the padding.

    Padding is a token that stands only in runs at the end of the texts of a batch, or only at their
    beginning, and whose runs have different lengths. It is so at two logged steps
    at least, and at more than half of them: in a batch without padding a token may stand at the end
    of texts by chance.

    Why it hurts: what the network says of a text depends on how long the others of its batch are.

    Silent: for padding that a causal mask hides; where the ids of the tokens are not what the
    network receives, or attention has more keys than there are tokens.

    Example: ``model(input_ids)`` without ``attention_mask``.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "attended_padding"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        known = {step: facts for step, facts in evidence.facts.items() if facts.padding}
        newest = evidence.newest.padding
        most = max(self.least, len(evidence.facts) // 2 + 1)
        if len(known) < most or not newest:
            return
        layer, weight = max(newest.items(), key=lambda entry: entry[1])
        more = ""
        if len(newest) > 1:
            layers = "layer" if len(newest) == 2 else "layers"
            more = f"; likewise in {len(newest) - 1} further {layers}"
        yield Finding(
            message=f"tokens give {percent(weight)} of their attention to padding in a head of "
            f"`{layer}`{more}",
            since_step=min(known),
            layer=layer,
            value=weight,
            healthy="0",
            meaning="What the network says of a text depends on how long the others of its batch "
            "are",
            advice="Give attention a mask that hides the padding (attention_mask, "
            "key_padding_mask), and check whether its True hides a token or shows it",
        )
