"""A likelihood without its logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import LossKind
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, lasting, quoted, with_known_loss
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule

_MEANINGS = {
    LossKind.NLL_OF_PROBABILITIES: "The loss is the NLL of probabilities, whose logarithm is "
    "missing: inputs with a small probability get hardly any gradient",
    LossKind.NLL_OF_LOGITS: "The loss is the NLL of logits, to which no log_softmax was applied: "
    "it has no least value, and the logits grow without end",
}
"""Kinds of losses -> what they mean."""


@dataclass(frozen=True, slots=True)
class LossWithoutLogarithmCheck(Rule):
    """A negative log-likelihood receives probabilities or logits instead of logarithms.

    The gradient of the output is that of such a loss at the newest logged steps.

    Why it hurts: examples with a small probability get hardly any gradient; of logits, the loss
    has no least value.

    Silent: where the loss cannot be read from the gradient. The mean absolute error looks the
    same, so it is a note.

    Example: ``F.nll_loss(torch.softmax(logits, 1), labels)``.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "loss_without_logarithm"
    group: ClassVar[str] = "probabilities_into_loss"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            known = with_known_loss(steps)
            since = lasting(known, lambda output: output.kind in _MEANINGS, self.least)
            if since is None:
                continue
            kind = list(known.values())[-1].kind
            number = "the output" if kind == LossKind.NLL_OF_LOGITS else "the probability"
            yield Finding(
                message=f"the loss of the output{quoted(name)} is linear in {number} of the "
                f"label since step {since}",
                since_step=since,
                healthy="in the logarithm of its probability",
                meaning=_MEANINGS[kind],
                advice="Use cross_entropy on the logits; intended if it is the mean absolute error",
            )
