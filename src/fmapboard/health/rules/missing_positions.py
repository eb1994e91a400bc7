"""Attention that does not know where a token is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class MissingPositionsCheck(Rule):
    """Wherever a token stands in a text, the network says the same of it, although labels differ.

    It is so at the last two logged steps, for every pair of equal tokens in the same text that is
    read. The labels are read from the gradient of the outputs.

    Why it hurts: to the network a text is a bag of tokens, and it learns how frequent the labels
    are at best.

    Silent: without attention over the tokens of a text, and where it is causal, since the number of
    earlier tokens tells a place; for one answer per text; for outputs in half precision; with
    dropout, which makes the answers differ: ``rehearse`` turns it off and tells.

    Example: ``nn.TransformerEncoder`` on embeddings of tokens without an embedding of positions.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "missing_positions"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        over_texts = {
            step: facts for step, facts in evidence.facts.items() if facts.is_causal is False
        }
        newest = list(over_texts.values())[-self.least :]
        if len(newest) < self.least:
            return
        if not all(any(output.ignores_places for output in facts.outputs) for facts in newest):
            return
        yield Finding(
            class_="warning",
            message="wherever a token stands in a text, the network says the same of it, although "
            "the labels differ",
            since_step=min(over_texts),
            meaning="Attention does not see the order of tokens: nothing tells the network where "
            "a token is",
            advice="Add an embedding of positions to that of the tokens, or turn queries and keys "
            "by their positions (rotary embeddings)",
        )
