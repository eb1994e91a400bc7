"""A softmax over probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, lasting, quoted, with_known_loss
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class DoubleSoftmaxCheck(Rule):
    """The loss applies a softmax to probabilities, or two softmaxes follow the logits.

    The gradient of the output says so, at the last two logged steps at which the loss is known.

    Why it hurts: two softmaxes flatten the gradient, and the loss cannot come near 0.

    Silent: where the loss cannot be read from the gradient.

    Example: ``F.cross_entropy(torch.softmax(logits, 1), labels)``.
    """

    kind: ClassVar[str] = "double_softmax"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    is_from_start: ClassVar[bool] = True
    cure: ClassVar[str] = "no_activation"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            known = with_known_loss(steps)
            least = min(len(known), thresholds.LASTING.value)
            since = lasting(known, lambda output: output.is_softmax_of_softmax, least)
            if since is None:
                continue
            text = f"two softmaxes follow the output{quoted(name)}"
            if steps[since].rows_are == "probabilities":
                text = f"the output{quoted(name)} is probabilities, and the loss applies a "
                text += "softmax to them again"
            yield Finding(
                class_="warning",
                message=f"{text}, since step {since}",
                since_step=since,
                meaning="Two softmaxes flatten the gradient, and the loss cannot come near 0",
                advice="Give the loss the logits: cross_entropy applies log_softmax itself. "
                "Or use nll_loss on the logarithm of the probabilities",
            )
