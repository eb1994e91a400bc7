"""A loss that training makes larger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, lasting, quoted, with_known_loss
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class LossClimbedCheck(Rule):
    """The gradient is that of a known loss times -1, or the optimizer has ``maximize=True``.

    At the last two logged steps at which the loss is known.

    Why it hurts: the network learns to give wrong answers.

    Silent: if the loss falls all the same, so that something else makes it fall.

    Example: ``loss = -F.cross_entropy(logits, labels)``.
    """

    kind: ClassVar[str] = "loss_climbed"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True
    cure: ClassVar[str] = "turned_sign"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            since = lasting(with_known_loss(steps), _is_climbed, thresholds.LASTING.value)
            if since is None:
                continue
            later = [output.loss for step, output in steps.items() if step >= since]
            known = [loss for loss in later if loss is not None]
            if known and known[-1] < known[0]:
                continue  # something else makes it fall
            grew = f": it went from {known[0]:.3g} to {known[-1]:.3g}" if known else ""
            yield Finding(
                class_="warning",
                message=f"the optimizer makes the loss of the output{quoted(name)} larger "
                f"since step {since}{grew}",
                since_step=since,
                value=known[-1] if known else None,
                meaning="The sign is wrong: a minus too many, or a log-likelihood is minimized",
                advice="Minimize the loss itself; to maximize on purpose, switch this check off",
            )


def _is_climbed(output: OutputFacts) -> bool:
    return output.is_climbed
