"""Attention between the samples of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class AttentionOverBatchCheck(Rule):
    """All attention of the network is between the samples of the batch, and none between tokens.

    It is so at two logged steps and at more than half of them. There are as many queries and keys
    as samples, and several matrices of them, whose number is no multiple of that of the samples.

    Why it hurts: tokens of a sample never see each other, and what the network says of one depends
    on the others of its batch.

    Silent: if a layer attends over anything else, as in networks that attend to samples and to
    their features in turn; where one output per sample does not tell which axis is the batch; for a
    number of tokens that is a multiple of the number of samples, which may be windows.

    Example: ``nn.MultiheadAttention`` or ``nn.TransformerEncoderLayer`` without
    ``batch_first=True`` on [N, T, D].

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "attention_over_batch"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        known = {s: facts for s, facts in evidence.facts.items() if facts.between_samples}
        most = max(self.least, len(evidence.facts) // 2 + 1)
        if len(known) < most:
            evidence.check_attention()
            return
        newest = list(known.values())[-1]
        layer = newest.between_samples[0]
        count = newest.count("between_samples")
        layers = f"`{layer}`" if count == 1 else f"each of {count} layers, the first `{layer}`"
        yield Finding(
            class_="warning",
            message=f"attention is between the samples of the batch, and not between their tokens, "
            f"in {layers}",
            since_step=min(known),
            layer=layer,
            meaning="Tokens of a sample do not see each other, and what the network says of it "
            "depends on the rest of its batch",
            advice="Pass batch_first=True to the attention of torch, or turn [N, T, D] to "
            "[T, N, D]",
        )
