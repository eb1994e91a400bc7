"""What a step says of the training, a file of its own for comparing a step with earlier ones.

The record of what only training knows, the losses that were read of the outputs, and the first
non-finite values. A loss that is read from an output and its gradient counts once two logged steps
agree on its kind. Until then its value is held back, and it is stored with the step that confirms
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import (
    FirstNonfinite,
    HeldLoss,
    Idle,
    Nonfinite,
    OutputFacts,
    Place,
    Unchanged,
    pack_training_facts,
)
from fmapboard.records import (
    LayerMeasurement,
    Parameter,
    RecordedFacts,
    StepData,
    TabRecord,
)
from fmapboard.summary.change import Weights
from fmapboard.summary.heads import head_facts


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
    changed_outside = dict[str, float]()
    clamped = dict[str, float]()
    for parameter in data.parameters:
        change = parameter.changed_outside
        if change is not None:
            changed_outside[parameter.name] = change.ratio
            if change.limit is not None:
                clamped[parameter.name] = change.limit
        weight = weights[parameter.name] if parameter.weight is not None else None
        if weight is not None and weight.steps:
            unchanged[parameter.name] = Unchanged(weight.steps, weight.since)
    facts = replace(
        data.facts.of_step,
        no_gradient=_without_gradient(data.facts.of_step.no_gradient, before, weights, data.step),
        idle=None if idle is None else idle.stored,
        unchanged=unchanged,
        changed_outside=changed_outside,
        clamped=clamped,
        weights_left=_weights_left(data, weights),
        nonfinite_weights=_nonfinite_weights(data.parameters),
        outputs=outputs,
        estimated_updates=tuple(_estimated_updates(data.parameters)),
    )
    facts = head_facts(facts, data.measured)
    return idle, [TabRecord(prefix + tags.TRAINING_FACTS, pack_training_facts(facts))]


def _estimated_updates(parameters: Iterable[Parameter]) -> list[str]:
    """Parameters whose update ratio is an estimate."""
    found = []
    for parameter in parameters:
        if parameter.update is not None and parameter.update.is_estimate:
            found.append(parameter.name)
    return found


def _weights_left(data: StepData, weights: Weights) -> float | None:
    """See ``TrainingFacts.weights_left``."""
    decays = None if data.facts is None else data.facts.of_step.weight_decays
    if decays is None or max(decays) <= 0:
        return None
    shares = []
    for parameter in data.parameters:
        is_weight = parameter.name.rpartition(".")[2].startswith("weight")
        first_norm = weights[parameter.name].first_norm if parameter.name in weights else None
        if is_weight and first_norm and parameter.update is not None:
            shares.append(parameter.update.norm / first_norm)
    return float(np.median(shares)) if shares else None


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


def _nonfinite_weights(parameters: Sequence[Parameter]) -> tuple[str, ...] | None:
    """Parameters of which a kept value is NaN or infinite; None if no weight was kept."""
    known = {
        parameter.name: parameter.weight.values
        for parameter in parameters
        if parameter.weight is not None
    }
    if not known:
        return None
    return tuple(name for name, values in known.items() if not np.isfinite(values).all())


class ReadLoss(NamedTuple):
    """What was read from the last output and gradient of one name that could be read.

    Attributes:
        held: step, loss and accuracy.
        kind: of the loss.
        is_climbed: as in ``OutputFacts``.
        is_certain: another step has agreed.
    """

    held: HeldLoss
    kind: str
    is_climbed: bool
    is_certain: bool


def certain_outputs(
    before: Mapping[str, ReadLoss], outputs: Iterable[OutputFacts], step: int
) -> tuple[Mapping[str, ReadLoss], tuple[OutputFacts, ...]]:
    """What to compare later steps with, and the outputs without what no other step agrees with.

    Args:
        before: By name of the output.
        outputs: As they were read.
        step: The logged step.
    """
    after = dict(before)
    certain = list[OutputFacts]()
    for output in outputs:
        if output.kind == "not certain":
            certain.append(output)
            continue
        last = before.get(output.name)
        agrees = (
            last is not None and last.kind == output.kind and last.is_climbed == output.is_climbed
        )
        held = HeldLoss(step, output.loss, output.accuracy)
        after[output.name] = ReadLoss(held, output.kind, output.is_climbed, agrees)
        if last is None or not agrees:
            certain.append(_without_loss(output))
        elif last.is_certain or output.given:
            certain.append(output)
        else:
            certain.append(replace(output, held=last.held))
    return after, tuple(certain)


def _without_loss(output: OutputFacts) -> OutputFacts:
    """Only what does not depend on which loss it is, and what the user gave."""
    known = OutputFacts(
        name=output.name,
        shape=output.shape,
        rows=output.rows,
        low=output.low,
        high=output.high,
        spread=output.spread,
        rows_are=output.rows_are,
        predictions=output.predictions,
        classes=output.classes,
    )
    if not output.given:
        return known
    return replace(
        known,
        loss=output.loss,
        accuracy=output.accuracy,
        labels=output.labels,
        label_changes=output.label_changes,
        given=True,
    )


def output_scalars(
    outputs: Iterable[OutputFacts], prefix: str
) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """The scalars of outputs by tag, and those of earlier steps that are certain now."""
    now = dict[str, float]()
    earlier = dict[int, dict[str, float]]()

    def tagged(output: OutputFacts, values: Mapping[str, float | None]) -> dict[str, float]:
        end = f"/{output.name}" if output.name else ""
        return {f"{prefix}{tag}{end}": value for tag, value in values.items() if value is not None}

    for output in outputs:
        tag = tags.LOSS_GIVEN if output.given else tags.LOSS_READ
        values = {
            tag: output.loss,
            tags.ACCURACY: output.accuracy,
            tags.OUTPUT_SPREAD: output.spread,
        }
        now |= tagged(output, values)
        held = output.held
        if held is not None:
            values = {tags.LOSS_READ: held.loss, tags.ACCURACY: held.accuracy}
            earlier.setdefault(held.step, {}).update(tagged(output, values))
    return now, earlier


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
        counts = _nonfinite_counts(part)
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


def _nonfinite_counts(part: LayerMeasurement) -> Nonfinite:
    statistics = part.statistics
    if statistics is None:
        return Nonfinite()
    return Nonfinite(
        int(statistics.nan.sum()),
        int(statistics.positive_infinity.sum()),
        int(statistics.negative_infinity.sum()),
    )
