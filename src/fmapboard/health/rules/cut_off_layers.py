"""Layers that are used and get no gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.gradient_cuts import cut_off_weights
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class CutOffLayersCheck(Rule):
    """A trainable weight of a layer that runs never gets a gradient.

    Another parameter of the layer has one, or it runs before every layer that has one.

    Why it hurts: the layer keeps its initial values.

    Silent: for layers behind those with gradients, whose result a loss may ignore, unless they are
    a quarter of all; for biases and the like, such as the token of a mask.

    Example: ``features.detach()`` in front of the head, while the backbone is to be trained.

    Attributes:
        least: number of logged steps without a gradient.
        ignored: share of the layers with kernels that run without one, behind others, from which
            they are reported, two at least; fewer may be those of a head that is not used.
        flat: share of the weights above which gradients of exactly 0 count as none.
    """

    least: int = thresholds.LOGGED_STEPS.value
    ignored: float = thresholds.IGNORED_SHARE.value
    flat: float = thresholds.FLAT_SHARE.value
    kind: ClassVar[str] = "cut_off_layers"
    group: ClassVar[str] = "unchanged_weights"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="cut_off_layers")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        steps = evidence.without_gradient
        if len(steps) < self.least:
            return
        names = cut_off_weights(evidence, self.ignored, self.flat)
        if not names:
            return
        are = "weights are" if len(names) > 1 else "weight is"
        yield Finding(
            message=f"{len(names)} trainable {are} without a gradient at each of {len(steps)} "
            f"logged steps, in layers that are used: {named(names)}",
            since_step=min(steps),
            parameter=names[0],
            parameters=tuple(names),
            value=len(names),
            healthy=evidence.weights_change,
            meaning="The layer runs in torch.no_grad(), it or its output is detached, not "
            "used or passed through something without a slope, such as rounding",
            advice="Remove what cuts the gradient off, or freeze the layer",
        )
