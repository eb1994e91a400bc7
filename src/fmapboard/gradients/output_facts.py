"""What the network's outputs and their gradients tell; a file of its own, as the worker runs it.

A batch of fewer than eight images has too few rows to tell which loss it is. Then the rows of
several logged steps are put together until there are eight, and the loss is read of them; its value
is that of the rows of the newest step. The factor of their gradients is the same in all these
steps unless the loss scale changes, which its rows outlive by a few steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isclose, isfinite, log2, prod
from typing import Any, NamedTuple

import numpy as np
import torch

from fmapboard.arithmetic import ceil_div
from fmapboard.formats.training_facts import MAX_NAMES, LossKind, NoLoss, OutputFacts
from fmapboard.gradients.loss import (
    LEAST_ROWS,
    NOTHING,
    Reading,
    predictions,
    read_rows,
    rows_with_gradient,
)
from fmapboard.gradients.outputs import MAX_ROWS, TOKENS_AHEAD, PendingOutput
from fmapboard.gradients.regression import (
    are_pulled_apart,
    common_target,
    distance_away,
    share_pulled,
)
from fmapboard.gradients.rounding import Array, Dtypes, in_float64
from fmapboard.health import thresholds
from fmapboard.records import HardImage


class ReadOutput(NamedTuple):
    """What was read from an output.

    Attributes:
        facts: None without a gradient.
        hardest: the images with the highest loss, highest first.
        no_loss: why the loss is not known, one of `NoLoss`; None if it is.
    """

    facts: OutputFacts | None
    hardest: tuple[HardImage, ...] = ()
    no_loss: str | None = None


class _AxisReading(NamedTuple):
    """What the rows [R, C] over one axis, as that of the classes, show."""

    axis: int
    rows: Array
    reading: Reading


class _StepRows(NamedTuple):
    """Rows of an output and its gradient at one step, [R, C]."""

    output: Array
    gradient: Array
    dtypes: Dtypes


class ReadLoss(NamedTuple):
    """The loss of an output, if it is certain which one it is.

    Attributes:
        axis: of the classes.
        step: every how many rows of `rows_of` one was read.
        reading: what these rows show.
        rows_are: as in ``OutputFacts``.
        factor: as there.
    """

    axis: int
    step: int
    reading: Reading
    rows_are: str
    factor: float | None


class OutputReader:
    """Reads the outputs of one logged step after another; used on the worker thread."""

    def __init__(self) -> None:
        self._earlier: dict[tuple[str, int], tuple[_StepRows, ...]] = {}

    def read(self, output: PendingOutput) -> ReadOutput:
        """What an output and its gradient tell.

        Args:
            output: on the CPU.
        """
        if output.gradient is None:
            why = NoLoss.SEVERAL if output.passes > 1 else NoLoss.NO_GRADIENT
            return ReadOutput(None, no_loss=why)
        facts = OutputFacts(output.name, output.shape)
        gradients = in_float64(output.gradient)
        values = in_float64(output.values)
        if not output.shape:  # the loss itself
            loss = float(values)
            is_climbed = bool(gradients < 0)
            known_loss = loss if isfinite(loss) else None
            return ReadOutput(replace(facts, loss=known_loss, is_climbed=is_climbed))
        values = _with_classes(values)
        gradients = gradients.reshape(values.shape)
        is_finite = np.isfinite(values)
        finite = values[is_finite]
        if finite.size:
            low = float(finite.min())
            high = float(finite.max())
            facts = replace(facts, low=low, high=high)
        units = values.reshape(len(values), -1)  # [n, U]
        facts = replace(facts, rows=len(values), spread=_spread(units))
        if not is_finite.all():
            return ReadOutput(facts, no_loss=NoLoss.NOT_CERTAIN)
        dtypes = Dtypes(output.values.dtype, output.gradient.dtype)
        step = _StepRows(values, gradients, dtypes)
        return self._read_finite(output, facts, step)

    def loss_of(self, output: PendingOutput) -> ReadLoss | None:
        """The loss of an output [N, C, ...] on the CPU; None if it is not certain which one it is.

        Call it for one logged step after another, as ``read``.
        """
        if output.gradient is None or not output.shape:
            return None
        values = _with_classes(in_float64(output.values))
        if not np.isfinite(values).all():
            return None
        gradients = in_float64(output.gradient).reshape(values.shape)
        dtypes = Dtypes(output.values.dtype, output.gradient.dtype)
        step = _StepRows(values, gradients, dtypes)
        every = self._readings(output.name, step)
        certain = [found for found in every if found.reading.kind != "not certain"]
        if len(certain) != 1:
            return None
        axis, rows, reading = certain[0]
        facts = OutputFacts(output.name, output.shape)
        facts = _with_reading(facts, rows, reading, dtypes.output)
        count = values.size // values.shape[axis]
        return ReadLoss(axis, _row_step(count), reading, facts.rows_are, facts.factor)

    def _read_finite(
        self, output: PendingOutput, facts: OutputFacts, step: _StepRows
    ) -> ReadOutput:
        """As ``read``, of finite values [n, C, ...]."""
        values = step.output
        gradient = step.gradient
        if values.ndim == 3 and _is_one_row(values, gradient, step.dtypes.output):
            facts = replace(facts, ignores_places=True)
        found = list(self._readings(output.name, step))
        certain = [each for each in found if each.reading.kind != "not certain"]
        if not certain and np.isfinite(gradient).all():
            facts = replace(
                facts,
                pulled=share_pulled(values, gradient),
                target=common_target(values, gradient),
                is_pulled_apart=are_pulled_apart(values, gradient),
                away=distance_away(values, gradient, prod(output.shape)),
            )
        no_loss = self._why_not(output, [each.reading for each in found])
        if len(found) > 1 and len(certain) != 1:  # the class axis is not known
            return ReadOutput(facts, no_loss=no_loss or NoLoss.NOT_CERTAIN)
        candidates = certain or found
        _, rows, reading = candidates[0]
        facts = _with_reading(facts, rows, reading, step.dtypes.output)
        if output.tokens is not None and reading.labels is not None:
            own_tokens = output.tokens.numpy()[:, :: _row_step(output.tokens.shape[1])]
            if own_tokens.shape[1] == len(rows):
                ignores = _ignores_places(own_tokens, rows, reading, step.dtypes.output)
                facts = replace(
                    facts,
                    labels_ahead=_labels_ahead(own_tokens, reading),
                    only_text=output.only_text,
                    needs_places=ignores is not None,
                    ignores_places=facts.ignores_places or ignores is True,
                )
        images = _hard_images(output, rows, reading)
        return ReadOutput(facts, images, no_loss)

    def _readings(self, name: str, step: _StepRows) -> Iterator[_AxisReading]:
        """For each axis that may be that of the classes, the rows and what they show."""
        axes = (1, 2) if step.output.ndim == 3 else (1,)
        for axis in axes:
            rows = _rows_of(step.output, axis)
            gradient = _rows_of(step.gradient, axis)
            if len(rows) >= LEAST_ROWS:
                reading = read_rows(rows, gradient, step.dtypes)
            else:
                own = _StepRows(rows, gradient, step.dtypes)
                reading = self._read_with_earlier((name, axis), own)
            yield _AxisReading(axis, rows, reading)

    def _read_with_earlier(self, key: tuple[str, int], step: _StepRows) -> Reading:
        """What the rows of a small batch show, together with those of the steps before."""
        if not np.isfinite(step.gradient).all():
            return NOTHING
        earlier = self._earlier.get(key, ())
        if earlier and not _are_alike(earlier[-1], step):
            earlier = ()
        steps = (*earlier, step)
        while _count(steps[1:]) >= LEAST_ROWS:
            steps = steps[1:]
        self._earlier[key] = steps
        outputs = [rows.output for rows in steps]
        gradients = [rows.gradient for rows in steps]
        output = np.concatenate(outputs)
        gradient = np.concatenate(gradients)
        found = read_rows(output, gradient, step.dtypes)
        return _since(found, first=len(output) - len(step.output))

    def _why_not(self, output: PendingOutput, readings: list[Reading]) -> str | None:
        """Why the loss of an output is not known; None if it is."""
        kinds = {reading.kind for reading in readings}
        if not kinds <= {"not certain", "weighted per sample"}:
            return None
        if output.passes > 1:
            return NoLoss.SEVERAL
        counts = []
        for (name, _), steps in self._earlier.items():
            if name == output.name:
                counts.append(_count(steps))
        if counts and max(counts) < LEAST_ROWS:
            return NoLoss.FEW_ROWS
        return NoLoss.NOT_CERTAIN


def _are_alike(earlier: _StepRows, step: _StepRows) -> bool:
    """True if the rows of two steps may be put together."""
    return earlier.output.shape == step.output.shape and earlier.dtypes == step.dtypes


def _count(steps: tuple[_StepRows, ...]) -> int:
    """Number of rows with a gradient."""
    count = 0
    for step in steps:
        count += len(rows_with_gradient(step.gradient))
    return count


def _since(found: Reading, first: int) -> Reading:
    """What was read of the rows from number ``first`` on; nothing if none has a gradient."""
    is_own = found.rows >= first
    if not is_own.any():
        return NOTHING
    rows = found.rows[is_own] - first
    parts: dict[str, Any] = {}
    for name in ("labels", "losses", "targets"):
        values = getattr(found, name)
        parts[name] = None if values is None else values[is_own]
    return replace(found, rows=rows, **parts)


def _rows_of(values: Array, axis: int) -> Array:
    """[n, C, ...] with the classes on an axis -> [R, C]."""
    classes_last = np.moveaxis(values, axis, -1)  # [n, ..., C]
    rows = classes_last.reshape(-1, values.shape[axis])  # [n*..., C]
    return rows[:: _row_step(len(rows))]


def _row_step(count: int) -> int:
    """Every how many of the rows one is read."""
    return ceil_div(count, MAX_ROWS)


def _with_classes(values: Array) -> Array:
    """[n] -> [n, 1]; anything else as it is."""
    return values[:, None] if values.ndim == 1 else values


def _spread(units: Array) -> float | None:
    """Mean over the units of [n, U] of (standard deviation) / (mean magnitude)."""
    if len(units) < 2 or not np.isfinite(units).all():
        return None
    magnitude = np.abs(units).mean(0)  # [U]
    magnitude[magnitude == 0] = 1.0
    relative = units.std(0) / magnitude
    return float(relative.mean())


def _with_reading(
    facts: OutputFacts, rows: Array, found: Reading, dtype: torch.dtype
) -> OutputFacts:
    """The facts with what the rows of the output, of this dtype, and their gradients tell."""
    predicted = predictions(rows)
    rounding = torch.finfo(dtype).eps
    rows_are = _rows_are(rows, max(2 * rounding, thresholds.SUM_OF_ROW.value))
    facts = replace(
        facts,
        rows=len(rows),
        rows_are=rows_are,
        predictions=len(np.unique(predicted)),
        kind=found.kind,
        is_climbed=found.is_climbed,
        classes=rows.shape[1],
    )
    labels = found.labels
    if found.losses is not None:
        is_twice = found.kind == LossKind.SOFTMAX_TWICE
        if rows_are == "probabilities" and found.kind.startswith("cross-entropy"):
            is_twice = True
        loss = float(found.losses.mean())
        facts = replace(
            facts,
            loss=loss,
            is_softmax_of_softmax=is_twice,
            factor=_factor(facts.shape, rows, found),
        )
        if labels is not None:
            is_right = predicted[found.rows] == labels
            facts = replace(facts, accuracy=float(is_right.mean()))
    if labels is None:
        return facts
    counts = Counter(labels.tolist())
    facts = replace(facts, labels=tuple(counts.most_common(MAX_NAMES)))
    if len(facts.shape) < 3:
        is_change = labels[1:] != labels[:-1]
        facts = replace(facts, label_changes=int(is_change.sum()))
    return facts


def _labels_ahead(tokens: Array, found: Reading) -> int | None:
    """See ``OutputFacts``.

    Args:
        tokens: as in ``PendingOutput``, of the rows [R, C] that were read.
        found: what was read of them.
    """
    assert found.labels is not None
    fits = list[int]()
    for ahead in range(TOKENS_AHEAD + 1):
        expected = tokens[ahead, found.rows]
        is_inside = expected >= 0
        labels = found.labels[is_inside]
        if len(labels) >= LEAST_ROWS and (labels == expected[is_inside]).all():
            fits.append(ahead)
    if not fits or fits[:2] == [0, 1]:
        return None
    return fits[0]


def _ignores_places(tokens: Array, rows: Array, found: Reading, dtype: torch.dtype) -> bool | None:
    """``OutputFacts.ignores_places`` of a text; None if no labels of equal tokens differ.

    Args:
        tokens: as in ``PendingOutput``, of all rows.
        rows: [R, C].
        found: what was read of them.
        dtype: of the output; rounding in half precision may hide a difference.
    """
    assert found.labels is not None
    own = tokens[0, found.rows]
    texts = tokens[-1, found.rows]
    order = np.lexsort((own, texts))
    first = order[:-1]
    second = order[1:]
    is_pair = (own[first] == own[second]) & (texts[first] == texts[second])
    first = first[is_pair]
    second = second[is_pair]
    has_other_label = found.labels[first] != found.labels[second]
    if has_other_label.sum() < LEAST_ROWS:
        return None
    if dtype.itemsize < torch.float32.itemsize:
        return False
    outputs = rows[found.rows]
    apart = np.abs(outputs[first] - outputs[second]).max()
    return bool(apart <= thresholds.SAME_OUTPUT.value * outputs.std())


def _is_one_row(values: Array, gradient: Array, dtype: torch.dtype) -> bool:
    """True if all rows of a sample are the same, but neither their gradients nor the samples are.

    Rows without a gradient are left out.

    Args:
        values: the output [n, T, C].
        gradient: of the same shape.
        dtype: as in `_ignores_places`.
    """
    has_gradient = np.asarray(gradient.any(axis=2))  # [n, T]
    has_several = has_gradient.sum(1) > 1
    if dtype.itemsize < torch.float32.itemsize or has_several.sum() < 2:
        return False
    if has_gradient[has_several].sum() < LEAST_ROWS:
        return False
    sample = np.arange(len(values))
    first = has_gradient.argmax(1)
    answers = values[sample, first][:, None]  # [n, 1, C]
    pulls = gradient[sample, first][:, None]
    error = thresholds.SAME_OUTPUT.value * values.std()
    apart = np.abs(values - answers)[has_gradient].max()
    differences = np.abs(gradient - pulls)[has_gradient].max()
    other_target = differences > thresholds.SAME_OUTPUT.value * np.abs(gradient).max()
    is_other_sample = np.ptp(answers[has_several], axis=0).max() > error
    return bool(apart <= error and other_target and is_other_sample)


def _factor(shape: tuple[int, ...], rows: Array, found: Reading) -> float | None:
    """What the mean over the rows was multiplied by; None if it is not known.

    A power of two that is not the number of rows or of their units is taken for a loss scale.

    Args:
        shape: of the whole output.
        rows: those that were looked at, [R, C].
        found: what was read of them.
    """
    if found.scale is None:
        return None
    units = prod(shape) * len(found.rows) / len(rows)
    factor = found.scale * units / rows.shape[1]
    error = thresholds.SAME_FACTOR.value
    exponent = log2(factor)
    is_power = abs(exponent - round(exponent)) < error
    is_scaled = is_power and exponent > log2(thresholds.LOSS_SCALE.value)
    is_sum = any(isclose(factor, count, rel_tol=error) for count in (units, units / rows.shape[1]))
    return None if is_scaled and not is_sum else factor


def _rows_are(rows: Array, slack: float) -> str:
    """What all rows of [R, C] are, as in ``OutputFacts.rows_are``; sums may be off by slack."""
    is_positive = bool((rows >= 0).all())
    if rows.shape[1] > 1:
        deviation = np.abs(rows.sum(1) - 1)
        if is_positive and (deviation <= slack).all():
            return "probabilities"
        top = rows.max(1)
        exponentials = np.exp(rows - top[:, None])
        log_total = top + np.log(exponentials.sum(1))
        largest = np.abs(rows).max(1)
        if (np.abs(log_total) <= slack * largest).all():
            return "log-probabilities"
    return "never negative" if is_positive else "any"


def _hard_images(output: PendingOutput, rows: Array, found: Reading) -> tuple[HardImage, ...]:
    """The images with the highest loss, highest first; none without labels and losses."""
    hardest = output.hardest
    labels = found.labels
    losses = found.losses
    if hardest is None or output.images is None:
        return ()
    if labels is None or losses is None:
        return ()
    place = {int(row): number for number, row in enumerate(found.rows)}
    predicted = predictions(rows)[found.rows]
    samples = found.rows * output.steps[0]
    images = in_float64(output.images).astype(np.float32)
    chosen = [place[row] for row in hardest.tolist() if row in place]
    kept = list[HardImage]()
    for number, image in zip(chosen, images, strict=False):
        hard = HardImage(
            image,
            sample=int(samples[number]),
            label=int(labels[number]),
            prediction=int(predicted[number]),
            loss=float(losses[number]),
        )
        kept.append(hard)
    kept.sort(key=lambda hard: -hard.loss)
    return tuple(kept)
