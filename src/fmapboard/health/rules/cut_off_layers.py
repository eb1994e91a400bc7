"""Layers that are used and get no gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
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
        names = self._names(evidence)
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

    def _names(self, evidence: Evidence) -> list[str]:
        """The weights without a gradient."""
        steps = evidence.without_gradient
        always = set.intersection(*steps.values())
        weights = [name for name in evidence.gradient_norms if name.endswith(".weight")]
        zero = {name for name in weights if evidence.has_zero_gradient(name)}
        if len(zero) > self.flat * len(weights):
            always |= zero
        names = [name for name in sorted(always) if _is_used(evidence, name, steps)]
        if names or evidence.record.health is None:
            return names
        kernels = evidence.kernels
        ignored = sorted(name for name in kernels & always if _ran(evidence, name, steps))
        return ignored if len(ignored) >= max(2, self.ignored * len(kernels)) else []


def _is_used(evidence: Evidence, parameter: str, steps: Iterable[int]) -> bool:
    """True for a weight of a layer that is used, so that a gradient would be expected.

    Another parameter of the layer has a gradient, or the layer ran at these steps before every
    layer that has one: something cuts off the start of the network.
    """
    layer, _, own = parameter.rpartition(".")
    if "weight" not in own or not layer:
        return False
    trained = {name.rpartition(".")[0] for name in evidence.gradient_norms}
    if layer in trained:
        return True
    if evidence.record.health is None:
        return False
    layers = [row.facts.layer for row in evidence.record.health.rows]
    first = next((index for index, name in enumerate(layers) if name in trained), 0)
    return layer in layers[:first] and _ran(evidence, parameter, steps)


def _ran(evidence: Evidence, parameter: str, steps: Iterable[int]) -> bool:
    """True if the layer of a parameter ran at these steps."""
    table = evidence.layers
    layer = parameter.rpartition(".")[0]
    rows = [index for index, row in enumerate(table.rows) if row.facts.layer == layer]
    if not rows:
        return False
    is_asked = np.isin(table.steps, list(steps))
    is_known = np.isfinite(table.columns["minimum"][is_asked][:, rows])  # [steps, calls]
    return bool(is_known.any(1).all())
