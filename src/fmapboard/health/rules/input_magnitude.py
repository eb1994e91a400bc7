"""Inputs other than images that are not scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.gradient_ratios import input_magnitudes, receives_zeros
from fmapboard.health.record import NotRecorded
from fmapboard.health.rule import Rule
from fmapboard.health.table import HealthRow


@dataclass(frozen=True, slots=True)
class InputMagnitudeCheck(Rule):
    """Inputs that are no images and far from 1, estimated from the first layer's gradients.

    The norm of the gradient of its weight over that of its bias is about the magnitude of its
    inputs, by which the weight is multiplied. Inputs that are all 0 are known by the first layer,
    which returns constants, and whose weight is not 0 and has a gradient of 0.

    Why it hurts: initial weights and learning rates are made for inputs with a standard deviation
    near 1.

    Silent: for embeddings, whose inputs have no magnitude, if a normalization follows the first
    layer, and where the bias has no gradient, as behind a mean that is subtracted.

    Example: a table whose column of incomes goes up to 100,000.

    Attributes:
        low: magnitude at the first logged step, up to which it is reported; later such inputs may
            have killed the network, and its gradients tell nothing.
        high: the same, from which it is reported.
        noise: magnitude from which the gradient of the bias is rounding noise: it cancels.
    """

    low: float = thresholds.INPUT_LOW.value
    high: float = thresholds.INPUT_HIGH.value
    noise: float = thresholds.INPUT_NOISE.value
    kind: ClassVar[str] = "input_magnitude"
    group: ClassVar[str] = "input_scale"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    cure: ClassVar[str] = "normalized_inputs"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if evidence.image_numbers:
            return  # images have rules of their own
        first = evidence.first_layer
        if first is not None and receives_zeros(evidence, first):
            yield _zeros(evidence, first)
            return
        if first is not None and first.facts.type == "Embedding":
            return  # words have no magnitude
        found = input_magnitudes(evidence)
        if found is None or min(found.ratios[0], found.median) > self.noise:
            raise NotRecorded("the input's range")
        value = float(found.ratios[0])
        if self.low < value < self.high:
            return
        yield Finding(
            message=f"the network's inputs have a magnitude of about {rounded(value)} since "
            f"step {found.since}, estimated from its first layer, `{found.row.facts.layer}`",
            since_step=found.since,
            layer=found.row.facts.label,
            value=value,
            healthy="0.1 to 100",
            meaning="They are not scaled" if value > 1 else "They are scaled twice, or zeros",
            advice="Subtract the mean of each input and divide by its standard deviation",
        )


def _zeros(evidence: Evidence, row: HealthRow) -> Finding:
    since = evidence.layers.steps[0]
    return Finding(
        message=f"the network's inputs are all 0 since step {since}: its first layer, "
        f"`{row.facts.layer}`, returns the same values for all of them, and its weights, which are "
        "not 0, have a gradient of exactly 0",
        since_step=since,
        layer=row.facts.label,
        value=0.0,
        healthy="0.1 to 100",
        meaning="The network is trained on inputs without content: they are not loaded, or lost by "
        "a conversion or a normalization",
        advice="Print what the network receives, and check the dataset",
        cure="",
    )
