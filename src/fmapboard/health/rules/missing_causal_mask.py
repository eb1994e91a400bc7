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
    over the tokens; in one of them, if the network receives that text only. The labels are read
    from the gradient of the outputs.

    Why it hurts: the network copies what it is to predict. The loss becomes small, and the network
    can generate nothing.

    Silent: if one layer hides the next token and the network receives more than that text, as the
    decoder behind an encoder does; for the part of a text that the loss leaves out; where the loss
    is not known.

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
        weights = newest[-1].next_key
        layer, weight = max(weights.items(), key=lambda entry: entry[1])
        total = len(weights)
        count = len([weight for weight in weights.values() if weight > self.weight])
        layers = f"in each of {total} layers" if count == total else f"in {count} of {total} layers"
        if total == 1:
            layers = "in the only layer"
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
        """True if no layer hides the next token, or one does not although there is no encoder."""
        weights = facts.next_key.values()
        ahead = [output for output in facts.outputs if output.labels_ahead == 1]
        is_decoder = bool(ahead) and all(output.only_text for output in ahead)
        seen = max(weights) if is_decoder else min(weights)
        return seen > self.weight
