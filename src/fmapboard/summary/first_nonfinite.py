"""The first non-finite values of a step, a file of its own for the order that "first" means."""

from __future__ import annotations

import math
from typing import cast

from fmapboard.formats.training_facts import FirstNonfinite, Nonfinite, Place
from fmapboard.records import LayerMeasurement, StepData


def first_nonfinite(data: StepData) -> FirstNonfinite | None:
    """Find the first non-finite values of a logged step; None without any.

    "First" is the order of computation: activations in call order (a layer's input before its
    output), then gradients of activations from the last layer to the first, then gradients of
    parameters in definition order.
    """
    forward = [part for part in data.measured if part.kind in ("feature_maps", "inputs")]
    forward.sort(key=lambda part: (part.layer_call.position, part.kind == "feature_maps"))
    backward = [part for part in data.measured if part.kind == "gradients_of_maps"]
    backward.sort(key=lambda part: -part.layer_call.position)
    for part in (*forward, *backward):
        counts = _counts(part)
        if any(counts):
            return FirstNonfinite(
                step=data.step,
                place=cast(Place, part.kind),
                owner=part.layer_call.layer,
                type=part.layer_call.type,
                call=part.layer_call.call,
                found=counts,
                total=math.prod(part.shape),
                counted=part.is_counted,
            )
    for parameter in data.parameters:
        if any(parameter.nonfinite):
            return FirstNonfinite(
                step=data.step,
                place="gradients",
                owner=parameter.name,
                type="",
                call=0,
                found=parameter.nonfinite,
                total=0,
            )
    return None


def _counts(part: LayerMeasurement) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    return Nonfinite(
        int(statistics.nan.sum()),
        int(statistics.positive_infinity.sum()),
        int(statistics.negative_infinity.sum()),
    )
