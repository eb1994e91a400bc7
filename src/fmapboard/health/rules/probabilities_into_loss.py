"""Probabilities, or what a ReLU or tanh returned, in front of a loss that expects logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import BINARY, Evidence, is_over_classes, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.output_sources import source_of
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ProbabilitiesIntoLossCheck(Rule):
    """A loss on logits receives what a sigmoid, softmax, ReLU or tanh returned.

    Such an output is never negative, or ends near -1 and 1, at each logged step.

    Why it hurts: the loss applies a softmax or sigmoid itself, so that the gradient is flattened
    and the loss cannot come near 0.

    Silent: for averages of maps behind a ReLU, as those of SqueezeNet; for single units unless
    their range is that of a sigmoid; where the loss is not known at two logged steps.

    Example: a network that ends in ``nn.Sigmoid()``, trained with ``BCEWithLogitsLoss``.

    Attributes:
        least: number of logged steps.
    """

    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "probabilities_into_loss"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    is_from_start: ClassVar[bool] = True
    cure: ClassVar[str] = "no_activation"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            every = list(steps.values())
            known = [output for output in every if _takes_logits(output)]
            if len(known) < thresholds.LASTING.value:
                continue
            source = source_of(every, known, self.least)
            if source is None or _averages_activations(evidence, known[-1]):
                continue
            low = min(output.low for output in every)
            high = max(output.high for output in every)
            yield Finding(
                message=f"the output{quoted(name)} is from {low:.2g} to {high:.2g} at "
                f"{len(every)} {evidence.record.steps_called}, and the loss ({known[-1].kind}) "
                "takes it for logits",
                since_step=min(steps),
                value=low,
                healthy="logits of both signs and any size",
                meaning=f"It looks like the output of {source} in front of a loss that "
                "applies a softmax or sigmoid: the gradient is flattened, and the loss cannot "
                "come near 0",
                advice="Return what is computed before it, the logits",
            )


def _takes_logits(output: OutputFacts) -> bool:
    if output.given or output.is_softmax_of_softmax or output.kind.startswith("NLL"):
        return False
    return is_over_classes(output) or output.kind == BINARY


def _averages_activations(evidence: Evidence, output: OutputFacts) -> bool:
    """True if the last layer has kernels, one channel per class, and an activation behind it."""
    rows = [] if evidence.record.health is None else evidence.record.health.rows
    layers = [row.facts for row in rows if row.facts.kernel_shape or row.facts.type == "Linear"]
    if not layers:
        return False
    last = layers[-1]
    return bool(last.kernel_shape and last.activation) and last.channels == output.classes
