"""The first value that is not finite: where it stands, and what is said about it."""

from __future__ import annotations

import math

from fmapboard.records import LayerMeasurement, Nonfinite, Parameter, StepData, TensorKind

_WHAT: dict[TensorKind, str] = {
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
    forward = [part for part in data.measured if part.kind in ("feature_maps", "inputs")]
    forward.sort(key=lambda part: (part.layer_call.position, part.kind == "feature_maps"))
    backward = [part for part in data.measured if part.kind == "gradients_of_maps"]
    backward.sort(key=lambda part: -part.layer_call.position)
    for part in (*forward, *backward):
        found = _counts(part)
        if any(found):
            return f"step {data.step}: {_of_layer(part, found)}"
    for parameter in data.parameters:
        if any(parameter.nonfinite):
            return f"step {data.step}: {_of_parameter(parameter)}"
    return None


def _counts(part: LayerMeasurement) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    rows = (statistics.nan, statistics.positive_infinity, statistics.negative_infinity)
    return Nonfinite(*(int(row.sum()) for row in rows))


def _of_layer(part: LayerMeasurement, found: Nonfinite) -> str:
    call, total = part.layer_call, math.prod(part.shape)
    layer = f"layer `{plain(call.layer)}` ({call.type}, call {call.call})"
    named = f"{_WHAT[part.kind]} of {layer}"
    return f"first values that are not finite: {found} of {total:,} in the {named}"


def _of_parameter(parameter: Parameter) -> str:
    named = f"gradient of parameter `{plain(parameter.name)}`"
    return f"first values that are not finite: {parameter.nonfinite} in the {named}"


def plain(name: str) -> str:
    """A name that stays inside its code quotes in markdown."""
    return name.replace("`", "'").replace("\n", " ")
