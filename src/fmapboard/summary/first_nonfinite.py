"""Find and describe the first non-finite value of a step."""

from __future__ import annotations

import math

from fmapboard.records import LayerMeasurement, Nonfinite, Parameter, StepData, TensorKind

_TENSOR_NAMES: dict[TensorKind, str] = {
    "feature_maps": "activations",
    "inputs": "input",
    "gradients_of_maps": "gradient of the activations",
}


def first_nonfinite(data: StepData) -> str | None:
    """Describe the first non-finite values of a logged step, in markdown; None without any.

    "First" is the order of computation: activations in call order (a layer's input before its
    output), then gradients of activations from the last layer to the first, then gradients of
    parameters in definition order.
    """
    forward = [part for part in data.measured if part.kind in ("feature_maps", "inputs")]
    forward.sort(key=lambda part: (part.layer_call.position, part.kind == "feature_maps"))
    backward = [part for part in data.measured if part.kind == "gradients_of_maps"]
    backward.sort(key=lambda part: -part.layer_call.position)
    for part in (*forward, *backward):
        found = _counts(part)
        if any(found):
            return f"step {data.step}: {_describe_layer(part, found)}"
    for parameter in data.parameters:
        if any(parameter.nonfinite):
            return f"step {data.step}: {_describe_parameter(parameter)}"
    return None


def _counts(part: LayerMeasurement) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    rows = (statistics.nan, statistics.positive_infinity, statistics.negative_infinity)
    return Nonfinite(*(int(row.sum()) for row in rows))


def _describe_layer(part: LayerMeasurement, found: Nonfinite) -> str:
    call, total = part.layer_call, math.prod(part.shape)
    layer = f"layer `{plain(call.layer)}` ({call.type}, call {call.call})"
    named = f"{_TENSOR_NAMES[part.kind]} of {layer}"
    least = "" if part.statistics is None or part.statistics.counted else "at least "
    return f"first non-finite values: {least}{found} of {total:,} in the {named}"


def _describe_parameter(parameter: Parameter) -> str:
    named = f"gradient of parameter `{plain(parameter.name)}`"
    return f"first non-finite values: {parameter.nonfinite} in the {named}"


def plain(name: str) -> str:
    """A name without backticks and line breaks, safe inside a markdown code span."""
    return name.replace("`", "'").replace("\n", " ")
