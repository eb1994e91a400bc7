"""Weights that get no gradient although their layers are used."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fmapboard.health.evidence import Evidence


def cut_off_weights(evidence: Evidence, ignored: float, flat: float) -> list[str]:
    """The weights that never get a gradient although their layers are used.

    Args:
        evidence: of the run.
        ignored: share of the layers with kernels that run without a gradient, behind others, from
            which these are among them.
        flat: share of the weights above which gradients of exactly 0 count as none.

    Raises:
        NotRecorded: nothing of the training process was recorded.
    """
    steps = evidence.without_gradient
    always = set.intersection(*steps.values())
    weights = [name for name in evidence.gradient_norms if name.endswith(".weight")]
    zero = {name for name in weights if evidence.has_zero_gradient(name)}
    if len(zero) > flat * len(weights):
        always |= zero
    names = [name for name in sorted(always) if _is_used(evidence, name, steps)]
    if names or evidence.record.health is None:
        return names
    kernels = evidence.kernels
    behind = sorted(name for name in kernels & always if _ran(evidence, name, steps))
    return behind if len(behind) >= max(2, ignored * len(kernels)) else []


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
