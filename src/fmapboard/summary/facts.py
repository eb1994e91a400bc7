"""What only training knows, a file of its own as it draws nothing; the first non-finite value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from fmapboard.formats import tags
from fmapboard.formats.training_facts import (
    FirstNonfinite,
    Idle,
    Nonfinite,
    Place,
    Unchanged,
    pack_training_facts,
)
from fmapboard.records import LayerMeasurement, Parameter, RecordedFacts, StepData, TabRecord
from fmapboard.render.quantize import finite_extremes
from fmapboard.summary.change import Weights


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
        call, found = part.layer_call, _counts(part)
        if any(found):
            place, total = cast(Place, part.kind), math.prod(part.shape)
            return FirstNonfinite(
                data.step, place, call.layer, call.type, call.call, found, total, part.is_counted
            )
    for one in data.parameters:
        if any(one.nonfinite):
            return FirstNonfinite(data.step, "gradients", one.name, "", 0, one.nonfinite, 0)
    return None


def _counts(part: LayerMeasurement) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    rows = (statistics.nan, statistics.positive_infinity, statistics.negative_infinity)
    return Nonfinite(*(int(row.sum()) for row in rows))


IdleStep: TypeAlias = tuple[bytes, Idle]
"""Digest of the weights at a step without an optimizer step, and what is stored of it."""


def training_facts(
    idle: IdleStep | None, before: Weights, weights: Weights, data: StepData, prefix: str
) -> tuple[IdleStep | None, list[TabRecord]]:
    """The step without an optimizer step to compare later ones with, and the record of a step.

    There is no record if nothing was recorded.

    Args:
        idle: The last step, if no optimizer stepped in it.
        before: The weights of earlier steps.
        weights: The weights with those of this step.
        data: The step.
        prefix: Prefix of every tag.
    """
    if data.facts is None:
        return idle, []
    idle = _still(idle, data.facts, data.step)
    names = [one.name for one in data.parameters if one.weight is not None]
    alone = data.facts.of_step.no_gradient
    if alone is not None:  # without those that something else changes, such as an average
        alone = tuple(n for n in alone if n not in before or weights[n].since < data.step)
    facts = replace(
        data.facts.of_step,
        no_gradient=alone,
        idle=None if idle is None else idle[1],
        unchanged={
            name: Unchanged(weights[name].steps, weights[name].since)
            for name in names
            if weights[name].steps
        },
        nonfinite_weights=_nonfinite(data.parameters),
    )
    return idle, [TabRecord(prefix + tags.TRAINING_FACTS, pack_training_facts(facts))]


def _still(before: IdleStep | None, facts: RecordedFacts, step: int) -> IdleStep | None:
    """Digest of the weights at a step without an optimizer step, and since when they are equal."""
    idle = facts.of_step.idle
    if facts.weights is None or idle is None:
        return None
    if before is None or before[0] != facts.weights:
        return facts.weights, replace(idle, since=step)
    return facts.weights, replace(idle, steps=before[1].steps + 1, since=before[1].since)


def _nonfinite(parameters: Sequence[Parameter]) -> tuple[str, ...] | None:
    """Parameters of which a kept value is NaN or infinite; None if no weight was kept."""
    known = [(one.name, one.weight.values) for one in parameters if one.weight is not None]
    if not known:
        return None
    return tuple(name for name, values in known if not finite_extremes(values)[2])
