"""NaN and infinite values: where they are first, and what the record tells about the cause.

The first of these causes that applies is said: a weight of the layer is not finite; the first layer
received images that are not finite; the layers called before were all finite; the forward pass was
finite and the gradients of all, or of some, parameters are not. Where it is not recorded whether
the layer's weights are finite, that is said first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import FirstNonfinite, Place
from fmapboard.health.finding import Finding, named
from fmapboard.health.layer_findings import first_nonfinite, further
from fmapboard.health.record import BuiltInCheck, RunRecord
from fmapboard.health.states import LARGE
from fmapboard.health.table import HealthTable, call_text

Cause = tuple[str, str]
"""What it may mean, and what to do."""

_UNKNOWN = (
    "It is not recorded whether the layer's weights were finite: if not, they are the cause. "
)
_LOOK_AT_WEIGHTS = "Check torch.isfinite(parameter).all() for the parameters of the layer. "
_LOSS = (
    "Look for a logarithm of 0, a division by 0 or a square root of 0 in the loss; "
    "torch.autograd.set_detect_anomaly(True) names the operation"
)
_SMALLER = "lower the learning rate or clip the gradients"
_SCALED = "Check how the images are scaled; in half precision, compute that layer in float32"
_AGAINST_OVERFLOW = f"{_SMALLER.capitalize()}; in half precision, compute that layer in float32"
_ARGUMENTS = (
    "Look for a division, logarithm, square root or exponential there, and keep its argument in "
    "its range with a clamp or a small constant"
)
_IN_TRAINING = f"; if the values grew before, {_SMALLER}"


@dataclass(frozen=True, slots=True)
class NonfiniteCheck(BuiltInCheck):
    """NaN or infinite values in activations or gradients at any logged step."""

    kind: ClassVar[str] = "nonfinite"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        table = record.layers()
        found = first_nonfinite(table)
        if found is None:
            return
        told = table.first_nonfinite
        if told is not None and (told.step, told.label or "") != (found.since, found.label):
            told = None  # the finding is from other numbers
        evidence = Evidence(record, table, found.since, found.index, told)
        meaning, advice = cause(evidence)
        own, rest = _own_weights(evidence), further(found.more)
        whose = f", whose {_not_finite(own)}" if own else ""
        yield Finding(
            class_="warning",
            message=f"{found.message.removesuffix(rest)}{whose}{rest}",
            since_step=found.since,
            layer=found.label or None,
            parameter=told.owner if told is not None and told.label is None else None,
            value=found.value,
            meaning=meaning,
            advice=advice,
            picture="" if found.index is None else record.picture(table.rows[found.index]),
        )


class Evidence(NamedTuple):
    """What is known about the first non-finite value.

    Attributes:
        record: the record of the model.
        table: its layers.
        step: the logged step.
        row: index of the layer; None for a parameter, or a layer that is not in the table.
        told: what `watch` wrote about it; None if it wrote nothing.
    """

    record: RunRecord
    table: HealthTable
    step: int
    row: int | None
    told: FirstNonfinite | None

    @property
    def place(self) -> Place:
        """The tensor that has it."""
        return "feature_maps" if self.told is None else self.told.place

    @property
    def before(self) -> int | None:
        """The logged step before; None for the first one."""
        return max((step for step in self.table.steps if step < self.step), default=None)

    @property
    def is_only_nan(self) -> bool:
        """NaN was found, and no infinity."""
        return self.told is not None and list(self.told.found.kinds) == ["NaN"]

    def at_step(self, numbers: Floats) -> Floats:
        """Of numbers [steps, layers] those at the step, [layers]; NaN if it is not known."""
        if self.step not in self.table.steps:
            return np.full(len(self.table.rows), np.nan)
        found: Floats = numbers[self.table.steps.index(self.step)]
        return found


def cause(of: Evidence) -> Cause:
    """What the first non-finite value may mean, and what to do, as two sentences."""
    if of.place == "gradients":
        return _of_parameter(of)
    if of.place == "gradients_of_maps":
        return (
            "Activations are finite; these arise on the way back, in the loss or behind this layer",
            _LOSS,
        )
    against = _SCALED if of.table.is_of_images else _AGAINST_OVERFLOW
    if of.row is None and _is_overflow(of):
        return _overflow(of), against
    if of.row is None:
        return f"It is not recorded what computed them; {_arithmetic(of)}", _LOSS
    own = _own_weights(of)
    if own:
        return _of_weights(of, own)
    has_lost_images = of.row == 0 and bool(_images(of).get("nonfinite"))
    weights = "" if own is None else "The layer's recorded weights are finite. "
    if own is None and of.place == "feature_maps" and not has_lost_images:
        weights = _UNKNOWN
    meaning, advice = _of_first(of) if of.row == 0 else _of_later(of, of.row)
    if _is_overflow(of) and not _images(of).get("nonfinite"):
        return f"{_overflow(of)}. {weights}{meaning}", against
    return f"{weights}{meaning}", _LOOK_AT_WEIGHTS * (weights is _UNKNOWN) + advice


def _own_weights(of: Evidence) -> tuple[str, ...] | None:
    """Parameters of a layer with such an output that are not finite; None if it is not known."""
    facts = of.record.facts.get(of.step)
    names = None if facts is None else facts.nonfinite_weights
    if of.row is None or of.place != "feature_maps" or names is None:
        return None
    layer = of.table.rows[of.row].facts.layer
    return tuple(name for name in names if name.startswith(f"{layer}."))


def _not_finite(own: tuple[str, ...]) -> str:
    return f"{named(own)} {'is' if len(own) == 1 else 'are'} not finite"


def _of_weights(of: Evidence, own: tuple[str, ...]) -> Cause:
    facts = of.record.facts[of.step]
    others = facts.count("nonfinite_weights") - len(own)
    besides = f", and {others} further parameter{'s' * (others > 1)} of the network" * (others > 0)
    meaning = f"The fault is in the weights: {_not_finite(own)}{besides}, so the output is lost"
    if of.before is None:
        return (
            f"{meaning}. It was so at the first logged step",
            "Check the initialization or the checkpoint that was loaded, with "
            "torch.isfinite(parameter).all() for each parameter",
        )
    known = of.record.facts.get(of.before)
    if known is not None and known.nonfinite_weights == ():
        meaning += f". At step {of.before}, the logged step before, the recorded ones were finite"
    return (
        f"{meaning}: a gradient since then was not finite, a step too large, or other code did it",
        "Go back to a checkpoint: these weights do not recover. clip_grad_norm_ with "
        f"error_if_nonfinite=True stops at the first such gradient; log each step from {of.before}",
    )


def _of_first(of: Evidence) -> Cause:
    """The first layer that is called."""
    images = _images(of)
    count = int(images.get("nonfinite", 0))
    if count:
        return (
            f"The network's input is not finite: {count:,} value{'s' * (count > 1)} of the drawn "
            f"images {'are' if count > 1 else 'is'} NaN or infinite",
            "Check how the images are loaded and normalized: a standard deviation of 0, a "
            "logarithm, a damaged file, a missing value",
        )
    drawn = "the drawn ones are finite" if "nonfinite" in images else "they are not recorded"
    return (
        f"It is the first layer: what it received were the images of the batch ({drawn}) or what "
        "code before it made of them",
        "Check torch.isfinite(images).all() for each batch, then how the images are loaded and "
        "normalized",
    )


def _of_later(of: Evidence, row: int) -> Cause:
    """A layer behind others, which were finite: otherwise they would have been named."""
    before = call_text(of.table, of.table.rows[row - 1])
    known = not np.isnan(of.at_step(of.table.columns["nonfinite"])[:row]).any()
    finite = "What was called before it returned finite values, so they arise "
    start = finite if known else "They arise "
    where = f"in code between {before} and this layer, or in another input of the network"
    own = " or its weights" * (_own_weights(of) is None)
    where = where if of.place == "inputs" else f"in this layer{own}, {where}"
    end = "" if _is_overflow(of) else f"; {_arithmetic(of)}"
    return f"{start}{where}{end}", _ARGUMENTS + _IN_TRAINING * (not of.table.is_of_images)


def _images(of: Evidence) -> Mapping[str, float]:
    """Numbers of the drawn input images at the step; empty if they are not known."""
    return of.record.network_input.get(of.step, {})


def _is_overflow(of: Evidence) -> bool:
    return _peak(of)[0] >= LARGE


def _overflow(of: Evidence) -> str:
    peak, layer = _peak(of)
    how = ", as in infinity − infinity" * of.is_only_nan
    return f"The values have overflowed{how}: finite magnitudes reach {peak:.2g} in {layer}"


def _arithmetic(of: Evidence) -> str:
    """Which kind of computation it was, from the kind of value, if it was no overflow."""
    if of.is_only_nan:
        peak = _peak(of)[0]
        return (
            "NaN without an infinity comes from 0 / 0, or a logarithm or square root of a "
            "negative number" + (f": no finite value exceeds {peak:.2g}" if peak > 0 else "")
        )
    return (
        "an infinity comes from a division by 0, a logarithm of 0, or values too large for the "
        "number format (65,504 in float16)"
    )


def _peak(of: Evidence) -> tuple[float, str]:
    """The largest finite magnitude up to the layer at the step, and the layer that has it."""
    end = len(of.table.rows) if of.row is None else of.row + 1
    known = np.nan_to_num(of.at_step(of.table.magnitudes)[:end], nan=0.0, posinf=0.0)
    if not known.size or not known.any():
        return 0.0, ""
    at = int(known.argmax())
    return float(known[at]), call_text(of.table, of.table.rows[at])


def _of_parameter(of: Evidence) -> Cause:
    """The gradient of a parameter; all activations of the step were finite."""
    norms = of.record.scalars.get(tags.GRADIENT_NORM, {})
    of_parameters = (series for name, series in norms.items() if name != tags.TOTAL)
    known = [norm for one in of_parameters for norm in one.values[one.steps == of.step].tolist()]
    lost = [norm for norm in known if not math.isfinite(norm)]
    start = "All activations of the step are finite"
    peak, layer = _peak(of)
    large = f"; magnitudes reach {peak:.2g} in {layer}: an overflow, perhaps" * (peak >= LARGE)
    advice = f"{_LOSS}; {_SMALLER}" if large else _LOSS
    after = ". The optimizer writes such a gradient into the weights"
    if known and len(lost) == len(known):
        return (
            f"{start}, and the gradients of all {len(known)} parameters are not: the loss itself "
            f"is NaN or infinite, or its derivative{large}{after}",
            advice,
        )
    if lost and len(lost) < len(known):
        return (
            f"{start}, and the gradients of {len(lost)} of {len(known)} parameters are not: such "
            f"values arise in the backward pass, behind these layers{large}{after}",
            "torch.autograd.set_detect_anomaly(True) names the operation: often a square root or "
            f"norm at 0, or a division by 0{f'; {_SMALLER}' if large else ''}",
        )
    return f"{start}: the values arise in the loss or in the backward pass{large}{after}", advice
