"""The record of what only the training process knows; which weights are unchanged or not finite.

A weight is *unchanged* since an earlier logged step if all of its values that are kept for the
histogram are the same: of up to 16,384 values these are all, of larger weights they are at the same
positions at each step. A step counts only if an optimizer updated the parameter at a learning rate
above 0 and at least one of these values had to change, beyond rounding: its gradient times the rate
(the update of plain SGD) and the rate itself (about the update of Adam) both exceed `MARGIN` times
the distance to the next float32. So the following is never called unchanged: parameters without
a gradient or with a gradient of zero (unused branches, dead activations, terms of the loss with
weight 0), warm-up from rate 0, and fine-tuning at a rate so small that float32 cannot represent the
update. Weights in float16 or bfloat16 have coarser values; if those swallow each update, the weight
is unchanged.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import Idle, Unchanged, pack_findings
from fmapboard.records import (
    LayerMeasurement,
    Nonfinite,
    Parameter,
    StepData,
    TabRecord,
    TensorKind,
    TrainingFacts,
)
from fmapboard.render.quantize import finite_extremes

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


_Idle: TypeAlias = tuple[bytes, Idle]
"""Digest of the weights at a step without an optimizer step, and what is stored of it."""
MARGIN = 8
"""How many float32 values an update must span at least to be called a step."""


class _Weight(NamedTuple):
    """A weight at the last logged step at which it was updated.

    Attributes:
        digest: of its values.
        since: logged step since which they are the same.
        steps: number of steps since then that had to change it, without the last one.
        moves: the last step had to change it.
    """

    digest: bytes
    since: int
    steps: int
    moves: bool


class FindingsBuilder:
    """Builds the record of each step; used by one thread at a time.

    Args:
        prefix: Prefix of every tag.
    """

    def __init__(self, prefix: str) -> None:
        self._tag = prefix + tags.FINDINGS
        self._weights: Mapping[str, _Weight] = {}
        self._idle: _Idle | None = None
        self._before: tuple[Mapping[str, _Weight], _Idle | None] = {}, None

    def __call__(self, data: StepData) -> list[TabRecord]:
        """The record of a step; none if nothing was recorded."""
        self._before = self._weights, self._idle
        if data.facts is None:
            return []
        before, now = self._weights, dict(self._weights)
        unchanged: dict[str, Unchanged] = {}
        for parameter in data.parameters:
            weight = _followed(
                now.get(parameter.name), parameter, data.step, data.facts.rates.get(parameter.name)
            )
            if weight is None:
                continue
            now[parameter.name] = weight
            if weight.steps:
                unchanged[parameter.name] = Unchanged(weight.steps, weight.since)
        self._weights = now
        self._idle = _still(self._idle, data.facts, data.step)
        alone = data.facts.findings.no_gradient
        if alone is not None:  # without those that something else changes, such as an average
            alone = tuple(n for n in alone if n not in before or now[n].since < data.step)
        findings = replace(
            data.facts.findings,
            no_gradient=alone,
            idle=None if self._idle is None else self._idle[1],
            unchanged=unchanged,
            nonfinite_weights=_nonfinite(data.parameters),
        )
        return [TabRecord(self._tag, pack_findings(findings))]

    def undo(self) -> None:
        """Discard the last step, which could not be stored."""
        self._weights, self._idle = self._before


def _still(before: _Idle | None, facts: TrainingFacts, step: int) -> _Idle | None:
    """Digest of the weights at a step without an optimizer step, and since when they are equal."""
    idle = facts.findings.idle
    if facts.weights is None or idle is None:
        return None
    if before is None or before[0] != facts.weights:
        return facts.weights, replace(idle, since=step)
    return facts.weights, replace(idle, steps=before[1].steps + 1, since=before[1].since)


def _followed(
    before: _Weight | None, parameter: Parameter, step: int, rate: float | None
) -> _Weight | None:
    """The weight at this step; None if it is not known."""
    if parameter.weight is None:
        return None
    values = np.ascontiguousarray(parameter.weight.values)
    digest = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
    moves = rate is not None and rate > 0 and _has_to_move(parameter, rate)
    if before is None or before.digest != digest:
        return _Weight(digest, step, 0, moves)
    return _Weight(digest, before.since, before.steps + before.moves, moves)


def _nonfinite(parameters: Sequence[Parameter]) -> tuple[str, ...] | None:
    """Parameters of which a kept value is NaN or infinite; None if no weight was kept."""
    known = [(one.name, one.weight.values) for one in parameters if one.weight is not None]
    if not known:
        return None
    return tuple(name for name, values in known if not finite_extremes(values)[2])


def _has_to_move(parameter: Parameter, rate: float) -> bool:
    """True if one step at this rate changes at least one of the values that are kept."""
    weight, gradient = parameter.weight, parameter.gradient
    if weight is None or gradient is None or any(parameter.nonfinite):
        return False
    if gradient.values.shape != weight.values.shape:
        return False
    with np.errstate(all="ignore"):
        next_value = np.spacing(np.abs(weight.values.astype(np.float32))) * np.float64(MARGIN)
        update = np.abs(gradient.values.astype(np.float64)) * rate
        return bool(((update > next_value) & np.isfinite(update) & (rate > next_value)).any())
