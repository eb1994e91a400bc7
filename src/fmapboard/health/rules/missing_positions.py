"""Attention that does not know where a token is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.attention import guesses_tokens, has_heads
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule

_SAME_OF_TEXT = (
    "wherever a token stands in a text, the network says the same of it, although the labels differ"
)
_SAME_OF_SAMPLE = (
    "at each place of a sample that the loss looks at, the network says the same, although the "
    "targets differ"
)
_SAME_WEIGHT = (
    "the first attention over a text gives equal tokens the same weight wherever they stand, and "
    "the loss stays near that of the frequency of the labels alone"
)


@dataclass(frozen=True, slots=True)
class MissingPositionsCheck(Rule):
    """Wherever a token is, the network says the same of it, although labels differ.

    It is so at the last two logged steps: of a text for every pair of equal tokens that is read; of
    other samples for all places that the loss looks at, such as masked patches. Labels are read
    from the gradient of the outputs. With dropout, equal tokens of a text have different outputs:
    then the first attention gives them equal logits, and the loss stays near that of the frequency
    of the labels alone.

    Why it hurts: to the network a text is a bag of tokens, and it learns how frequent the labels
    are at best.

    Silent: without attention over the tokens, and where it is causal, since the number of earlier
    tokens tells a place; for one answer per sample; for outputs in half precision; for different
    patches, which are different tokens; with dropout in front of the first attention. ``rehearse``
    turns dropout off and tells.

    Example: ``nn.TransformerEncoder`` on embeddings of tokens without an embedding of positions.

    Attributes:
        near: how far the loss is below that of the frequency of the labels at most, with dropout.
        least: number of logged steps.
    """

    near: float = thresholds.NEAR_GUESS.value
    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "missing_positions"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        known = {step: facts for step, facts in evidence.facts.items() if not facts.is_causal}
        newest = list(known.values())[-self.least :]
        if len(newest) < self.least:
            return
        ignores = [any(output.ignores_places for output in facts.outputs) for facts in newest]
        alike = [any(output.attends_alike for output in facts.outputs) for facts in newest]
        if all(ignores) and newest[-1].is_causal is False:
            message = _SAME_OF_TEXT
        elif all(ignores) and has_heads(evidence):
            message = _SAME_OF_SAMPLE
        elif all(alike) and guesses_tokens(evidence, self.near):
            message = _SAME_WEIGHT
        else:
            return
        yield Finding(
            class_="warning",
            message=message,
            since_step=min(known),
            meaning="Attention does not see the order of tokens: nothing tells the network where "
            "a token is",
            advice="Add an embedding of positions to that of the tokens, or turn queries and keys "
            "by their positions (rotary embeddings)",
        )
