"""The first value that is not finite: where it stands, and what is said about it."""

from __future__ import annotations

import math

from fmapboard.records import Measured, Nonfinite, Parameter, Role, StepData

_WHAT: dict[Role, str] = {
    "feature_maps": "activations",
    "inputs": "input",
    "gradients_of_maps": "gradient of the activations",
}


def first_nonfinite(data: StepData) -> str | None:
    """Where a logged step first has values that are not finite, as markdown; None for nowhere.

    In the order in which they come to be: activations as the layers were called (a layer's input
    before its output), their gradients from the last layer back, then gradients of parameters in
    the model's order.
    """
    forward = [part for part in data.measured if part.role in ("feature_maps", "inputs")]
    forward.sort(key=lambda part: (part.site.position, part.role == "feature_maps"))
    backward = [part for part in data.measured if part.role == "gradients_of_maps"]
    backward.sort(key=lambda part: -part.site.position)
    for part in (*forward, *backward):
        found = _counts(part)
        if any(found):
            return f"step {data.step}: {_of_layer(part, found)}"
    for parameter in data.parameters:
        if any(parameter.nonfinite):
            return f"step {data.step}: {_of_parameter(parameter)}"
    return None


def _counts(part: Measured) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    rows = (statistics.nan, statistics.positive_infinity, statistics.negative_infinity)
    return Nonfinite(*(int(row.sum()) for row in rows))


def _of_layer(part: Measured, found: Nonfinite) -> str:
    site, total = part.site, math.prod(part.shape)
    named = f"{_WHAT[part.role]} of layer `{plain(site.layer)}` ({site.type}, call {site.call})"
    return f"first values that are not finite: {found} of {total:,} in the {named}"


def _of_parameter(parameter: Parameter) -> str:
    named = f"gradient of parameter `{plain(parameter.name)}`"
    return f"first values that are not finite: {parameter.nonfinite} in the {named}"


def plain(name: str) -> str:
    """A name that stays inside its code quotes in markdown."""
    return name.replace("`", "'").replace("\n", " ")
