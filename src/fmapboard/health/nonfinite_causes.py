"""The cause of the first non-finite value, as far as the record tells it.

The first of these causes that applies is said: a weight of the layer is not finite; the first layer
received images that are not finite; the layers called before were all finite; the forward pass was
finite and the gradients of all, or of some, parameters are not. Where it is not recorded whether
the layer's weights are finite, that is said first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import FirstNonfinite, Place
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import named, times
from fmapboard.health.record import RunRecord
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
_SCALED = "Check how the inputs are scaled; in half precision, compute that layer in float32"
_AGAINST_OVERFLOW = f"{_SMALLER.capitalize()}; in half precision, compute that layer in float32"
_ARGUMENTS = (
    "Look for a division, logarithm, square root or exponential there, and keep its argument "
    "in its range with a clamp or a small constant"
)
_IN_TRAINING = f"; if the values grew before, {_SMALLER}"


class FirstSeen(NamedTuple):
    """What is known about the first non-finite value.

    Attributes:
        record: the record of the model.
        table: its layers.
        step: the logged step.
        row: index of the layer; None for a parameter, or a layer that is not in the table.
        first: what `watch` wrote about it; None if it wrote nothing.
    """

    record: RunRecord
    table: HealthTable
    step: int
    row: int | None
    first: FirstNonfinite | None

    @property
    def place(self) -> Place:
        """The tensor that has it."""
        return "feature_maps" if self.first is None else self.first.place

    @property
    def before(self) -> int | None:
        """The logged step before; None for the first one."""
        return max((step for step in self.table.steps if step < self.step), default=None)

    @property
    def is_only_nan(self) -> bool:
        """NaN was found, and no infinity."""
        return self.first is not None and list(self.first.found.kinds) == ["NaN"]

    def at_step(self, numbers: Floats) -> Floats:
        """Of numbers [steps, layers] those at the step, [layers]; NaN if it is not known."""
        if self.step not in self.table.steps:
            return np.full(len(self.table.rows), np.nan)
        found: Floats = numbers[self.table.steps.index(self.step)]
        return found


def cause(first_seen: FirstSeen) -> Cause:
    """What the first non-finite value may mean, and what to do, as two sentences."""
    if first_seen.place == "gradients":
        return _of_parameter(first_seen)
    if first_seen.place == "gradients_of_maps":
        return (
            "Activations are finite; these arise on the way back, in the loss or behind this layer",
            _LOSS,
        )
    against = _SCALED if first_seen.table.is_of_images else _AGAINST_OVERFLOW
    if first_seen.row is None and _is_overflow(first_seen):
        return _overflow(first_seen), against
    if first_seen.row is None:
        return f"It is not recorded what computed them; {_arithmetic(first_seen)}", _LOSS
    own = own_weights(first_seen)
    if own:
        return _of_weights(first_seen, own)
    weights = ""
    look = ""
    if own is not None:
        weights = "The layer's recorded weights are finite. "
    elif first_seen.place == "feature_maps" and not is_input_lost(first_seen):
        weights = _UNKNOWN
        look = _LOOK_AT_WEIGHTS
    is_first = first_seen.row == 0
    meaning, advice = _of_first(first_seen) if is_first else _of_later(first_seen, first_seen.row)
    if _is_overflow(first_seen) and not _images(first_seen).get("nonfinite"):
        return f"{_overflow(first_seen)}. {weights}{meaning}", against
    return f"{weights}{meaning}", f"{look}{advice}"


def own_weights(first_seen: FirstSeen) -> tuple[str, ...] | None:
    """Parameters of a layer with such an output that are not finite; None if it is not known."""
    facts = first_seen.record.facts.get(first_seen.step)
    names = None if facts is None else facts.nonfinite_weights
    if first_seen.row is None or first_seen.place != "feature_maps" or names is None:
        return None
    layer = first_seen.table.rows[first_seen.row].facts
    own = tuple(name for name in names if name.startswith(f"{layer.layer}."))
    if layer.unit in ("head", "unit") and not own:
        return None  # their weights are those of layers within the block, which are not recorded
    return own


def is_input_lost(first_seen: FirstSeen) -> bool:
    """True if a drawn image that the first layer received is not finite."""
    return first_seen.row == 0 and bool(_images(first_seen).get("nonfinite"))


def not_finite(own: tuple[str, ...]) -> str:
    """That these parameters are not finite, as a clause."""
    return f"{named(own)} {'is' if len(own) == 1 else 'are'} not finite"


def _of_weights(first_seen: FirstSeen, own: tuple[str, ...]) -> Cause:
    facts = first_seen.record.facts[first_seen.step]
    before = first_seen.before
    others = facts.count("nonfinite_weights") - len(own)
    besides = ""
    if others > 0:
        parameters = "parameter" if others == 1 else "parameters"
        besides = f", and {others} further {parameters} of the network"
    meaning = f"The fault is in the weights: {not_finite(own)}{besides}, so the output is lost"
    if before is None:
        return (
            f"{meaning}. It was so at the first logged step",
            "Check the initialization or the checkpoint that was loaded, with "
            "torch.isfinite(parameter).all() for each parameter",
        )
    known = first_seen.record.facts.get(before)
    if known is not None and known.nonfinite_weights == ():
        meaning += f". At step {before}, the logged step before, the recorded ones were finite"
    return (
        f"{meaning}: a gradient since then was not finite, a step too large, or other code did it",
        "Go back to a checkpoint: these weights do not recover. clip_grad_norm_ with "
        "error_if_nonfinite=True stops at the first such gradient; log each step from "
        f"{before}",
    )


def recorded(evidence: Evidence, first_seen: FirstSeen) -> str:
    """The optimizer, its rate and largest update, and the number format, as recorded before."""
    step = first_seen.step if first_seen.before is None else first_seen.before
    facts = first_seen.record.facts.get(step)
    parts = []
    if facts is not None and facts.rates is not None:
        optimizer = " and ".join(facts.optimizers) or "the optimizer"
        parts.append(f"{optimizer} had a learning rate of {facts.rates[1]:.2g}")
    largest = evidence.largest_update(step)
    if largest is not None:
        parts.append(f"the largest update moved `{largest.parameter}` by {times(largest.value)}")
    if facts is not None and facts.dtypes:
        parts.append(f"the weights are in {' and '.join(facts.dtypes)}")
    return f". At step {step} {', '.join(parts)}" if parts else ""


def _of_first(first_seen: FirstSeen) -> Cause:
    """The first layer that is called."""
    images = _images(first_seen)
    count = int(images.get("nonfinite", 0))
    if count:
        values = "1 value of the drawn images is"
        if count > 1:
            values = f"{count:,} values of the drawn images are"
        return (
            f"The network's input is not finite: {values} NaN or infinite",
            "Check how the images are loaded and normalized: a standard deviation of 0, a "
            "logarithm, a damaged file, a missing value",
        )
    drawn = "the drawn ones are finite" if "nonfinite" in images else "they are not recorded"
    return (
        f"It is the first layer: what it received were the inputs of the batch ({drawn}) or "
        "what code before it made of them",
        "Check torch.isfinite(inputs).all() for each batch, then how they are loaded and "
        "normalized",
    )


def _of_later(first_seen: FirstSeen, row: int) -> Cause:
    """A layer behind others, which were finite: otherwise they would have been named."""
    before = call_text(first_seen.table, first_seen.table.rows[row - 1])
    known = not np.isnan(first_seen.at_step(first_seen.table.columns["nonfinite"])[:row]).any()
    finite = "What was called before it returned finite values, so they arise "
    start = finite if known else "They arise "
    where = f"in code between {before} and this layer, or in another input of the network"
    own = " or its weights" if own_weights(first_seen) is None else ""
    where = where if first_seen.place == "inputs" else f"in this layer{own}, {where}"
    end = "" if _is_overflow(first_seen) else f"; {_arithmetic(first_seen)}"
    advice = _ARGUMENTS if first_seen.table.is_of_images else _ARGUMENTS + _IN_TRAINING
    return f"{start}{where}{end}", advice


def _images(first_seen: FirstSeen) -> Mapping[str, float]:
    """Numbers of the drawn input images at the step; empty if they are not known."""
    return first_seen.record.network_input.get(first_seen.step, {})


def _is_overflow(first_seen: FirstSeen) -> bool:
    return _peak(first_seen)[0] >= thresholds.LARGE.value


def _overflow(first_seen: FirstSeen) -> str:
    peak, layer = _peak(first_seen)
    how = ", as in infinity − infinity" if first_seen.is_only_nan else ""
    return f"The values have overflowed{how}: finite magnitudes reach {peak:.2g} in {layer}"


def _arithmetic(first_seen: FirstSeen) -> str:
    """Which kind of computation it was, from the kind of value, if it was no overflow."""
    if first_seen.is_only_nan:
        peak = _peak(first_seen)[0]
        return (
            "NaN without an infinity comes from 0 / 0, or a logarithm or square root of a "
            "negative number" + (f": no finite value exceeds {peak:.2g}" if peak > 0 else "")
        )
    return (
        "an infinity comes from a division by 0, a logarithm of 0, or values too large for "
        "the number format (65,504 in float16)"
    )


def _peak(first_seen: FirstSeen) -> tuple[float, str]:
    """The largest finite magnitude up to the layer at the step, and the layer that has it."""
    end = len(first_seen.table.rows) if first_seen.row is None else first_seen.row + 1
    known = np.nan_to_num(
        first_seen.at_step(first_seen.table.magnitudes)[:end], nan=0.0, posinf=0.0
    )
    if not known.size or not known.any():
        return 0.0, ""
    at = int(known.argmax())
    return float(known[at]), call_text(first_seen.table, first_seen.table.rows[at])


def _of_parameter(first_seen: FirstSeen) -> Cause:
    """The gradient of a parameter; all activations of the step were finite."""
    norms = first_seen.record.scalars.get(tags.GRADIENT_NORM, {})
    known: list[float] = []
    for name, series in norms.items():
        if name != tags.TOTAL:
            known += series.values[series.steps == first_seen.step].tolist()
    lost = [norm for norm in known if not math.isfinite(norm)]
    start = "All activations of the step are finite"
    peak, layer = _peak(first_seen)
    large = ""
    advice = _LOSS
    if peak >= thresholds.LARGE.value:
        large = f"; magnitudes reach {peak:.2g} in {layer}: an overflow, perhaps"
        advice = f"{_LOSS}; {_SMALLER}"
    after = ". The optimizer writes such a gradient into the weights"
    if known and len(lost) == len(known):
        return (
            f"{start}, and the gradients of all {len(known)} parameters are not: the loss "
            f"itself is NaN or infinite, or its derivative{large}{after}",
            advice,
        )
    if lost and len(lost) < len(known):
        return (
            f"{start}, and the gradients of {len(lost)} of {len(known)} parameters are not: "
            f"such values arise in the backward pass, behind these layers{large}{after}",
            "torch.autograd.set_detect_anomaly(True) names the operation: often a square root "
            f"or norm at 0, or a division by 0{f'; {_SMALLER}' if large else ''}",
        )
    return f"{start}: the values arise in the loss or in the backward pass{large}{after}", advice


def is_spared(evidence: Evidence, first: FirstNonfinite | None) -> bool:
    """True if only gradients were not finite, in a step in which no optimizer used them."""
    if first is None or first.place != "gradients_of_maps":
        return False
    facts = evidence.record.facts.get(first.step)
    return facts is not None and facts.no_gradient is None
