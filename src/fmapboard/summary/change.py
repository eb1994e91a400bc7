"""How much maps and weights changed since an earlier logged step; the record of training facts.

*Maps* are compared where a probe is drawn, so that both steps show the same images. The change of
a channel is the root mean square of the difference between its drawn planes at both steps, divided
by the standard deviation of the earlier planes; over all drawn samples, and with the model in eval
mode, as for every pass of a probe. Compared are about `PIXELS` pixels per channel, spread evenly,
of what is stored: one byte per pixel, averaged over ``block`` x ``block`` values. Each value is up
to 1/255 of its plane's range too low, so a change below about 0.01 is within the rounding error;
detail finer than a block is not seen, nor are values outside of a locked scale. Reading `PIXELS`
pixels instead of all has a relative standard error of at most 5 %. Where the earlier plane is
constant, its magnitude is the unit.

*Weights* are compared at steps at which an optimizer steps, before it does, by the values that
their histograms use: up to 16,384 weights these are all, of larger weights they are at the same
positions at each step. The change of a channel of a drawn layer is |now - before| / |before|
(2-norms) over these values of that output channel in the layer's parameter ``weight``. For a
channel with n values of a larger weight the relative standard error is about 1 / sqrt(n), at most
35 %. With fewer than `LEAST`, and for weights whose first axis may not be the output channel
(transposed convolutions, other modules, shards), the change is that of the whole layer. The output
channel is taken to be the slowest axis in memory, as in contiguous and channels-last weights. The
effective weight of a parametrized layer is not known here.

A weight is *unchanged* since an earlier logged step if all of these values are the same. A step
counts only if an optimizer updated the parameter at a learning rate above 0 and at least one of the
values had to change, beyond rounding: its gradient times the rate (the update of plain SGD) and the
rate itself (about the update of Adam) both exceed `MARGIN` times the distance to the next float32.
So the following is never called unchanged: parameters without a gradient or with a gradient of zero
(unused branches, dead activations, terms of the loss with weight 0), warm-up from rate 0, and
fine-tuning at a rate so small that float32 cannot represent the update. Weights in float16 or
bfloat16 have coarser values; if those swallow each update, the weight is unchanged.

Kept between steps, per drawn channel: at most `PIXELS` bytes and 16 bytes per sample (twice the
bytes with non-finite values). For 64 drawn channels this is less than 100 KiB per layer call. And
per parameter, the values of its histogram, at most 64 KiB.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.training_facts import (
    HeldLoss,
    Idle,
    OutputFacts,
    Unchanged,
    pack_training_facts,
)
from fmapboard.records import (
    Bytes8,
    Floats,
    LayerCall,
    LayerMeasurement,
    Parameter,
    Planes,
    RecordedFacts,
    Sample,
    StepData,
    TabRecord,
    TaggedPictures,
    TransposedShape,
)
from fmapboard.render.quantize import finite_extremes

PIXELS = 256
"""Number of pixels of a channel that are compared, over all samples; at least one of each."""
_CHECKED = 4096
"""Maximum number of values of an input image that are compared."""
LEAST = 8
"""Minimum number of sampled weights of a channel for which a change of its own is estimated."""
MARGIN = 8
"""How many float32 values an update must span at least to be called a step."""
WEIGHTS: Final = "weights"


class Change(NamedTuple):
    """How much one tensor of a layer call changed.

    Attributes:
        values: [drawn]; of weights also [1], for the whole layer. NaN if nothing finite was
            compared, and infinity if the earlier values were all 0.
        since: number of the step that was compared with.
    """

    values: Floats
    since: int


class _Pixels(NamedTuple):
    """The compared pixels of a layer's drawn planes."""

    step: int
    shown: tuple[object, ...]
    pixels: Bytes8  # [N, C, P]
    marks: Bytes8 | None
    lo: Floats  # [N, C]
    hi: Floats

    def values(self, channels: int) -> Floats:
        """f64 [channels, N, P], NaN where a value was not finite."""
        lo, hi = self.lo[:, :channels, None], self.hi[:, :channels, None]
        values: Floats = self.pixels[:, :channels] * ((hi - lo) / 255)
        values += lo
        if self.marks is not None:
            values[self.marks[:, :channels] > 0] = np.nan
        by_channel: Floats = values.swapaxes(0, 1)
        return by_channel


class Weight(NamedTuple):
    """The histogram's sample of a parameter, at the logged step that later ones are compared with.

    Attributes:
        step: number of that step.
        values: the sample, not shared with others.
        total: number of values of the whole parameter.
        since: logged step since which the values are the same.
        steps: number of steps since then that had to change one of them, without the last one.
        moves: the last step had to change one.
    """

    step: int
    values: Floats  # [S]
    total: int
    since: int
    steps: int
    moves: bool


CHANGED: Final = ("inputs", "feature_maps", WEIGHTS)
"""What changes are known of."""
Changes = Mapping[tuple[str, str], Change]
"""Label of a layer with drawn maps and one of `CHANGED` -> its change."""
Maps = Mapping[tuple[str, str], _Pixels]
"""Label of a layer call and kind of a tensor -> what its maps are compared by."""
Weights = Mapping[str, Weight]
"""Name of a parameter -> its last sample."""


class Drawn(NamedTuple):
    """A step and what is drawn of it, for the tab's records.

    Attributes:
        data: The measurements.
        pictures: Label of a layer -> the pictures of it and of its kernels.
        changes: See ``changes_of_maps``.
        followers: Label of a layer -> the activation that follows it.
        prefix: Prefix of every tag.
    """

    data: StepData
    pictures: Mapping[str, Sequence[TaggedPictures]]
    changes: Changes
    followers: Mapping[str, LayerMeasurement]
    prefix: str


def changes_of_maps(
    before: Maps, weights: Weights, data: StepData, *, has_probe: bool
) -> tuple[Maps, Changes]:
    """The maps to compare later ones with, and the changes of maps and of their layers' weights.

    Args:
        before: The maps of earlier steps; not changed.
        weights: The weights of earlier steps.
        data: The step.
        has_probe: True if the drawn maps are those of a probe.
    """
    now = dict(before)
    images = _checksum(data) if has_probe else None
    parameters = {parameter.name: parameter for parameter in data.parameters}
    changes: dict[tuple[str, str], Change | None] = {}
    for part in data.measured:
        call, planes, key = part.layer_call, part.planes, (part.layer_call.label, part.kind)
        if planes is None or part.kind not in CHANGED:
            continue
        if images is not None:
            now[key] = _pixels(data.step, planes, images)
            changes[key] = _of_maps(before.get(key), now[key])
        name = f"{call.layer}.weight"
        if part.kind == "feature_maps" and name in weights and name in parameters:
            changes[call.label, WEIGHTS] = _of_weights(
                weights[name], parameters[name].weight, call, planes
            )
    return now, {key: change for key, change in changes.items() if change is not None}


def followed_weights(before: Weights, data: StepData) -> Weights:
    """The weights to compare later ones with.

    Args:
        before: Those of earlier steps; not changed.
        data: The step.
    """
    now = dict(before)
    rates = {} if data.facts is None else data.facts.rates
    # A GradScaler skips the update, which is then no reason to call weights unchanged.
    may_be_skipped = any(not math.isfinite(p.norm or 0.0) for p in data.parameters)
    for parameter in data.parameters:
        sample, last = parameter.weight, before.get(parameter.name)
        if sample is None:
            continue
        step, values, since, steps = data.step, sample.values, data.step, 0
        if last is not None and _is_same(last.values, values):
            values, since, steps = last.values, last.since, last.steps + last.moves
        if last is not None and may_be_skipped:
            step, values = last.step, last.values
        moves = not may_be_skipped and _has_to_move(parameter, rates.get(parameter.name, 0.0))
        kept = values.copy() if values is sample.values else values
        now[parameter.name] = Weight(step, kept, sample.total, since, steps, moves)
    return now


def _is_same(before: Floats, now: Floats) -> bool:
    """True if both have the same bytes, so that NaN is the same as NaN."""
    return before.dtype == now.dtype and before.tobytes() == now.tobytes()


def _has_to_move(parameter: Parameter, rate: float) -> bool:
    """True if one step at this rate changes at least one of the values that are kept."""
    weight, gradient = parameter.weight, parameter.gradient
    if weight is None or gradient is None or any(parameter.nonfinite) or not rate > 0:
        return False
    if gradient.values.shape != weight.values.shape:
        return False
    with np.errstate(all="ignore"):
        next_value = np.spacing(np.abs(weight.values.astype(np.float32))) * np.float64(MARGIN)
        update = np.abs(gradient.values.astype(np.float64)) * rate
        return bool(((update > next_value) & np.isfinite(update) & (rate > next_value)).any())


def _checksum(data: StepData) -> tuple[int, ...]:
    """Tells the probe's images apart from others, in case the user has replaced their values."""
    flat = (image.values.reshape(-1) for image in data.inputs)
    return tuple(zlib.crc32(v[:: -(-v.size // _CHECKED) or 1].tobytes()) for v in flat)


def _pixels(step: int, planes: Planes, images: tuple[int, ...]) -> _Pixels:
    samples, channels, height, width = planes.pixels.shape
    stride = max(1, -(-samples * height * width // PIXELS))
    # Sharing no factor with a side, the stride covers all rows and columns.
    while stride > 1 and math.gcd(stride, height * width) > 1:
        stride += 1
    flat, marks = (samples, channels, -1), planes.marks
    pixels = planes.pixels.reshape(flat)[..., ::stride].copy()
    marks = None if marks is None else marks.reshape(flat)[..., ::stride].copy()
    shown = (images, samples, height, width, planes.shape)
    return _Pixels(step, shown, pixels, marks, planes.lo, planes.hi)


def _of_maps(before: _Pixels | None, now: _Pixels) -> Change | None:
    """The change of each drawn channel [C]; None if there is nothing to compare with."""
    if before is None or before.shown != now.shown:
        return None
    drawn = now.pixels.shape[1]
    channels = min(drawn, before.pixels.shape[1])
    changes = np.full(drawn, np.nan)
    with np.errstate(all="ignore"):
        earlier, later = before.values(channels), now.values(channels)  # [channels, N, P]
        later -= earlier
        count: Floats = np.full(channels, earlier[0].size)
        if before.marks is not None or now.marks is not None:
            left_out = ~np.isfinite(later)
            count = count - left_out.sum((1, 2))
            later[left_out] = earlier[left_out] = 0.0
        moved, mean = _sum_of_squares(later) / count, earlier.sum((1, 2)) / count
        variance = _sum_of_squares(earlier) / count - mean * mean
        constant = variance <= 1e-12 * mean * mean
        unit = np.where(constant, np.abs(mean), np.sqrt(variance))
        changes[:channels] = _relative(np.sqrt(moved), unit)
    return Change(changes, before.step)


def _sum_of_squares(values: Floats) -> Floats:
    """[channels, N, P] -> [channels]."""
    sums: Floats = np.einsum("cnp,cnp->c", values, values)
    return sums


def _channel_ends(sample: Sample, call: LayerCall, planes: Planes) -> npt.NDArray[np.intp] | None:
    """Values of drawn channel c are ``sample.values[ends[c] : ends[c + 1]]``.

    None if the channels cannot be told apart, or one of them has too few values.
    """
    shape, size = call.kernel_shape, sample.values.size
    if shape is None or isinstance(shape, TransposedShape) or shape[0] != planes.channels:
        return None
    stride = -(-sample.total // size)
    is_unique = stride == 1 or -(-sample.total // (stride + 1)) < size
    if math.prod(shape) != sample.total or not is_unique:
        return None
    firsts = np.arange(planes.pixels.shape[1] + 1) * (sample.total // shape[0])
    ends = -(-firsts // stride)
    return ends if stride == 1 or np.diff(ends).min() >= LEAST else None


def _of_weights(
    before: Weight, sample: Sample | None, call: LayerCall, planes: Planes
) -> Change | None:
    """The change of each channel [drawn], or of the layer [1]; None if nothing can be compared."""
    if sample is None or not sample.values.size or before.total != sample.total:
        return None
    if before.values.size != sample.values.size:
        return None
    ends = _channel_ends(sample, call, planes)
    if ends is None:
        ends = np.array([0, sample.values.size])
    earlier, later = before.values[: ends[-1]].astype(np.float64), sample.values[: ends[-1]]
    with np.errstate(all="ignore"):
        squares = [np.add.reduceat(v * v, ends[:-1]) for v in (later - earlier, earlier)]
        moved, length = np.sqrt(squares)
        return Change(_relative(moved, length), before.step)


def _relative(change: Floats, unit: Floats) -> Floats:
    """``change / unit``; no change is 0 for every unit that is a number."""
    return np.where((change == 0) & ~np.isnan(unit), 0.0, change / unit)


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
    after, kept = dict(before), list[OutputFacts]()
    for one in outputs:
        last, held = before.get(one.name), HeldLoss(step, one.loss, one.accuracy)
        if one.kind != "not certain":
            agrees = last is not None and (last.kind, last.is_climbed) == (one.kind, one.is_climbed)
            after[one.name] = ReadLoss(held, one.kind, one.is_climbed, agrees)
            if not agrees:
                sure = _SURE + _GIVEN * one.given
                kept.append(OutputFacts(**{name: getattr(one, name) for name in sure}))
                continue
            if last is not None and not last.is_certain and not one.given:
                one = replace(one, held=last.held)
        kept.append(one)
    return after, tuple(kept)


_SURE = ("name", "shape", "rows", "low", "high", "spread", "rows_are", "predictions", "classes")
"""Fields of ``OutputFacts`` that do not depend on which loss it is."""
_GIVEN = ("loss", "accuracy", "labels", "label_changes", "given")
"""Fields that the user gave, with ``board.loss``."""


def output_scalars(
    outputs: Iterable[OutputFacts], prefix: str
) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """The scalars of outputs by tag, and those of earlier steps that are certain now."""
    now, earlier = dict[str, float](), dict[int, dict[str, float]]()
    for one in outputs:
        tag = tags.LOSS_GIVEN if one.given else tags.LOSS_READ
        values = {tag: one.loss, tags.ACCURACY: one.accuracy, tags.OUTPUT_SPREAD: one.spread}
        end = f"/{one.name}" if one.name else ""
        now |= {f"{prefix}{tag}{end}": v for tag, v in values.items() if v is not None}
        if one.held is not None:
            values = {tags.LOSS_READ: one.held.loss, tags.ACCURACY: one.held.accuracy}
            named = {f"{prefix}{tag}{end}": v for tag, v in values.items() if v is not None}
            earlier[one.held.step] = earlier.get(one.held.step, {}) | named
    return now, earlier


IdleStep: TypeAlias = tuple[bytes, Idle]
"""Digest of the weights at a step without an optimizer step, and what is stored of it."""


def training_facts(
    idle: IdleStep | None,
    before: Weights,
    weights: Weights,
    outputs: tuple[OutputFacts, ...],
    data: StepData,
    prefix: str,
) -> tuple[IdleStep | None, list[TabRecord]]:
    """The step without an optimizer step to compare later ones with, and the record of a step.

    There is no record if nothing was recorded.

    Args:
        idle: The last step, if no optimizer stepped in it.
        before: The weights of earlier steps.
        weights: The weights with those of this step.
        outputs: What is certain of the network's outputs.
        data: The step.
        prefix: Prefix of every tag.
    """
    if data.facts is None:
        return idle, []
    idle = _still(idle, data.facts, data.step)
    kept = {one.name: weights[one.name] for one in data.parameters if one.weight is not None}
    alone = data.facts.of_step.no_gradient
    if alone is not None:  # without those that something else changes, such as an average
        alone = tuple(n for n in alone if n not in before or weights[n].since < data.step)
    facts = replace(
        data.facts.of_step,
        no_gradient=alone,
        idle=None if idle is None else idle[1],
        unchanged={name: Unchanged(w.steps, w.since) for name, w in kept.items() if w.steps},
        nonfinite_weights=_nonfinite(data.parameters),
        outputs=outputs,
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
