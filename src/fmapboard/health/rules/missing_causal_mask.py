"""Attention that sees the tokens that the network is to predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class MissingCausalMaskCheck(Rule):
    """The label of each token is the next token, and attention gives weight to that one.

    It is so at two logged steps, for each query that is read, in every layer with self-attention
    over the tokens. The labels are read from the gradient of the outputs.

    Why it hurts: the network copies what it is to predict. The loss becomes small, and the network
    can generate nothing.

    Silent: if one layer hides the next token, as the decoder behind an encoder does; for the part
    of a text that the loss leaves out; where the loss is not known.

    Example: ``scaled_dot_product_attention`` without ``is_causal=True``, or
    ``nn.TransformerEncoder`` without a mask, in a language model.

    Attributes:
        weight: of the next key from which it is seen.
        least: number of logged steps.
    """

    weight: float = thresholds.SEEN.value
    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "missing_causal_mask"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        known = {step: facts for step, facts in evidence.facts.items() if facts.next_key}
        newest = list(known.values())[-self.least :]
        if len(newest) < self.least or not all(map(self._sees_next, newest)):
            return
        layer, weight = max(newest[-1].next_key.items(), key=lambda entry: entry[1])
        count = len(newest[-1].next_key)
        layers = "in the only layer" if count == 1 else f"in each of {count} layers"
        since = min(known)
        yield Finding(
            class_="warning",
            message=f"attention gives weight to the next token, which the network is to predict, "
            f"{layers} with attention: {rounded(weight)} or more in a head of `{layer}`",
            since_step=since,
            layer=layer,
            value=weight,
            meaning="The network copies what it is to predict, so its loss tells nothing, and it "
            "cannot generate",
            advice="Mask attention to later tokens (is_causal=True), and check the sign and the "
            "axes of the mask",
        )

    def _sees_next(self, facts: TrainingFacts) -> bool:
        """True if no layer hides the next token."""
        return min(facts.next_key.values()) > self.weight
