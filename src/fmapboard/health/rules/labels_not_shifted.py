"""A language model whose labels are not the next tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, percent
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class LabelsNotShiftedCheck(Rule):
    """In a network with causal attention, the label of each token is that token, or the second one
    behind it.

    It is so at the last two logged steps. The labels are read from the gradient of the outputs and
    compared with the texts that the network receives. Labels that are the tokens themselves count
    only once nearly all answers are right: the network says what it has just been given.

    Why it hurts: a network that copies its input, or leaves out each next token, cannot generate
    text.

    Silent: without attention over the tokens of a text, or if a layer over texts of that length
    sees later tokens, as the encoder of a text that is padded to that of the decoder does; if
    another output predicts the next token; for labels that are the tokens themselves until the
    network copies them, since it may move them on inside.

    Example: ``cross_entropy(model(ids).mT, ids)``, or labels that are shifted before a model of
    transformers shifts them again.

    Attributes:
        right: share of right answers from which the network copies.
        least: number of logged steps.
    """

    right: float = thresholds.COPIES.value
    least: int = thresholds.LASTING.value
    kind: ClassVar[str] = "labels_not_shifted"
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        causal = {step: facts for step, facts in evidence.facts.items() if facts.is_causal}
        newest = list(causal.values())[-self.least :]
        found = set(map(self._wrong_shift, newest))
        if len(newest) < self.least or len(found) > 1 or None in found:
            return
        if found == {0}:
            accuracy = newest[-1].outputs[0].accuracy
            yield Finding(
                class_="warning",
                message=f"the label of each token is that token, which the network has just "
                f"received: {percent(accuracy or 0.0)} of its answers are right",
                since_step=min(causal),
                value=accuracy,
                meaning="The network copies its input: its loss tells nothing, and it cannot "
                "generate",
                advice="Shift the labels by one token: logits[:, :-1] belong to ids[:, 1:]",
            )
            return
        yield Finding(
            class_="warning",
            message="the label of each token is the second one behind it, so the network learns "
            "to leave out the next token",
            since_step=min(causal),
            meaning="Labels are shifted twice: generated text lacks every second token",
            advice="Models of transformers shift the labels themselves: pass labels=input_ids, "
            "and in a loss of your own shift by one token",
        )

    def _wrong_shift(self, facts: TrainingFacts) -> int | None:
        """How many tokens ahead the labels are at a step if that is wrong; None if it is not."""
        ahead = {output.labels_ahead for output in facts.outputs} - {None}
        if ahead == {2}:
            return 2
        copies = [output.accuracy or 0.0 for output in facts.outputs if output.labels_ahead == 0]
        is_copy = ahead == {0} and min(copies) >= self.right
        return 0 if is_copy else None
