"""The record of what only training knows, a file of its own for comparing a step with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import Idle, OutputFacts, Unchanged, pack_training_facts
from fmapboard.records import Parameter, RecordedFacts, StepData, TabRecord
from fmapboard.summary.change import Weights


class IdleStep(NamedTuple):
    """A step without an optimizer step.

    Attributes:
        weights: Digest of some weights.
        stored: What is stored of it.
    """

    weights: bytes
    stored: Idle


def training_facts(
    last: IdleStep | None,
    before: Weights,
    weights: Weights,
    outputs: tuple[OutputFacts, ...],
    data: StepData,
    prefix: str,
) -> tuple[IdleStep | None, list[TabRecord]]:
    """The step without an optimizer step to compare later ones with, and the record of a step.

    There is no record if nothing was recorded.

    Args:
        last: The last step, if no optimizer stepped in it.
        before: The weights of earlier steps.
        weights: The weights with those of this step.
        outputs: What is certain of the network's outputs.
        data: The step.
        prefix: Prefix of every tag.
    """
    if data.facts is None:
        return last, []
    idle = _idle(last, data.facts, data.step)
    unchanged = dict[str, Unchanged]()
    for parameter in data.parameters:
        weight = weights[parameter.name] if parameter.weight is not None else None
        if weight is not None and weight.steps:
            unchanged[parameter.name] = Unchanged(weight.steps, weight.since)
    facts = replace(
        data.facts.of_step,
        no_gradient=_without_gradient(data.facts.of_step.no_gradient, before, weights, data.step),
        idle=None if idle is None else idle.stored,
        unchanged=unchanged,
        nonfinite_weights=_nonfinite(data.parameters),
        outputs=outputs,
    )
    return idle, [TabRecord(prefix + tags.TRAINING_FACTS, pack_training_facts(facts))]


def _without_gradient(
    names: Iterable[str] | None, before: Weights, weights: Weights, step: int
) -> tuple[str, ...] | None:
    """Without those that something else changes, such as an average of weights."""
    if names is None:
        return None
    return tuple(name for name in names if name not in before or weights[name].since < step)


def _idle(before: IdleStep | None, facts: RecordedFacts, step: int) -> IdleStep | None:
    """The step if no optimizer stepped in it, with since when the weights are the same."""
    idle = facts.of_step.idle
    if facts.weights is None or idle is None:
        return None
    if before is None or before.weights != facts.weights:
        return IdleStep(facts.weights, replace(idle, since=step))
    stored = replace(idle, steps=before.stored.steps + 1, since=before.stored.since)
    return IdleStep(facts.weights, stored)


def _nonfinite(parameters: Sequence[Parameter]) -> tuple[str, ...] | None:
    """Parameters of which a kept value is NaN or infinite; None if no weight was kept."""
    known = {
        parameter.name: parameter.weight.values
        for parameter in parameters
        if parameter.weight is not None
    }
    if not known:
        return None
    return tuple(name for name, values in known.items() if not np.isfinite(values).all())
