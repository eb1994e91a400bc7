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
from math import isfinite, prod
from typing import NamedTuple

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
from fmapboard.gradients.outputs import MAX_ROWS, PendingOutput
from fmapboard.gradients.regression import (
    are_pulled_apart,
    common_target,
    distance_away,
    share_pulled,
)
from fmapboard.gradients.rounding import Array, Dtypes, in_float64
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


class _StepRows(NamedTuple):
    """Rows of an output and its gradient at one step, [R, C]."""

    output: Array
    gradient: Array
    dtypes: Dtypes


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
        gradients = in_float64(output.gradient).reshape(output.values.shape)
        values = in_float64(output.values)
        if not output.shape:  # the loss itself
            loss = float(values)
            facts = replace(facts, loss=loss if isfinite(loss) else None)
            return ReadOutput(replace(facts, is_climbed=bool(gradients < 0)))
        if values.ndim == 1:
            values = values[:, None]  # [n, 1]
            gradients = gradients[:, None]
        is_finite = np.isfinite(values)
        finite = values[is_finite]
        if finite.size:
            facts = replace(facts, low=float(finite.min()), high=float(finite.max()))
        spread = _spread(values.reshape(len(values), -1))
        facts = replace(facts, rows=len(values), spread=spread)
        if not is_finite.all():
            return ReadOutput(facts, no_loss=NoLoss.NOT_CERTAIN)
        dtypes = Dtypes(output.values.dtype, output.gradient.dtype)
        return self._read_finite(output, facts, _StepRows(values, gradients, dtypes))

    def _read_finite(
        self, output: PendingOutput, facts: OutputFacts, step: _StepRows
    ) -> ReadOutput:
        """As ``read``, of finite values [n, C, ...]."""
        found = list(self._readings(output.name, step))
        certain = [(rows, one) for rows, one in found if one.kind != "not certain"]
        if not certain and np.isfinite(step.gradient).all():
            facts = replace(
                facts,
                pulled=share_pulled(step.output, step.gradient),
                target=common_target(step.output, step.gradient),
                is_pulled_apart=are_pulled_apart(step.output, step.gradient),
                away=distance_away(step.output, step.gradient, prod(output.shape)),
            )
        no_loss = self._why_not(output, [one for _, one in found])
        if len(found) > 1 and len(certain) != 1:  # the class axis is not known
            return ReadOutput(facts, no_loss=no_loss or NoLoss.NOT_CERTAIN)
        rows, reading = (certain or found)[0]
        slack = max(2 * torch.finfo(step.dtypes.output).eps, 1e-5)
        facts = _with_reading(facts, rows, reading, slack)
        return ReadOutput(facts, _hard_images(output, rows, reading), no_loss)

    def _readings(self, name: str, step: _StepRows) -> Iterator[tuple[Array, Reading]]:
        """For each axis that may be that of the classes, the rows and what they show."""
        for axis in (1, 2) if step.output.ndim == 3 else (1,):
            rows = _rows_of(step.output, axis)
            own = _StepRows(rows, _rows_of(step.gradient, axis), step.dtypes)
            if len(rows) < LEAST_ROWS:
                yield rows, self._read_with_earlier((name, axis), own)
            else:
                yield rows, read_rows(own.output, own.gradient, own.dtypes)

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
        output = np.concatenate([one.output for one in steps])
        gradient = np.concatenate([one.gradient for one in steps])
        found = read_rows(output, gradient, step.dtypes)
        return _of_last(found, len(step.output), len(output))

    def _why_not(self, output: PendingOutput, readings: list[Reading]) -> str | None:
        """Why the loss of an output is not known; None if it is."""
        if any(one.kind not in ("not certain", "weighted per sample") for one in readings):
            return None
        if output.passes > 1:
            return NoLoss.SEVERAL
        known = [steps for key, steps in self._earlier.items() if key[0] == output.name]
        if known and all(_count(steps) < LEAST_ROWS for steps in known):
            return NoLoss.FEW_ROWS
        return NoLoss.NOT_CERTAIN


def _are_alike(one: _StepRows, other: _StepRows) -> bool:
    """True if the rows of two steps may be put together."""
    return one.output.shape == other.output.shape and one.dtypes == other.dtypes


def _count(steps: tuple[_StepRows, ...]) -> int:
    """Number of rows with a gradient."""
    return sum(len(rows_with_gradient(step.gradient)) for step in steps)


def _of_last(found: Reading, count: int, total: int) -> Reading:
    """What was read of the last ``count`` of ``total`` rows; nothing if none has a gradient."""
    first = total - count
    is_own = found.rows >= first
    if not is_own.any():
        return NOTHING
    return replace(
        found,
        rows=found.rows[is_own] - first,
        labels=None if found.labels is None else found.labels[is_own],
        losses=None if found.losses is None else found.losses[is_own],
    )


def _rows_of(values: Array, axis: int) -> Array:
    """[n, C, ...] with the classes on an axis -> [R, C]."""
    rows = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    return rows[:: ceil_div(len(rows), MAX_ROWS)]


def _spread(units: Array) -> float | None:
    """Mean over the units of [n, U] of (standard deviation) / (mean magnitude)."""
    if len(units) < 2 or not np.isfinite(units).all():
        return None
    magnitude = np.abs(units).mean(0)
    return float((units.std(0) / np.where(magnitude > 0, magnitude, 1.0)).mean())


def _with_reading(facts: OutputFacts, rows: Array, found: Reading, slack: float) -> OutputFacts:
    """The facts with what the rows of the output and their gradients tell."""
    predicted = predictions(rows)
    rows_are = _rows_are(rows, slack)
    facts = replace(
        facts,
        rows=len(rows),
        rows_are=rows_are,
        predictions=len(np.unique(predicted)),
        kind=found.kind,
        is_climbed=found.is_climbed,
        classes=rows.shape[1],
    )
    if found.losses is not None:
        is_twice = rows_are == "probabilities" and found.kind.startswith("cross-entropy")
        is_twice = is_twice or found.kind == LossKind.SOFTMAX_TWICE
        loss = float(found.losses.mean())
        facts = replace(facts, loss=loss, is_softmax_of_softmax=is_twice)
    labels = found.labels
    if labels is None:
        return facts
    if found.losses is not None:
        is_right = predicted[found.rows] == labels
        facts = replace(facts, accuracy=float(is_right.mean()))
    facts = replace(facts, labels=tuple(Counter(labels.tolist()).most_common(MAX_NAMES)))
    if len(facts.shape) < 3:
        facts = replace(facts, label_changes=int((labels[1:] != labels[:-1]).sum()))
    return facts


def _rows_are(rows: Array, slack: float) -> str:
    """What all rows of [R, C] are, as in ``OutputFacts.rows_are``; sums may be off by slack."""
    is_positive = bool((rows >= 0).all())
    if rows.shape[1] > 1:
        if is_positive and (np.abs(rows.sum(1) - 1) <= slack).all():
            return "probabilities"
        top = rows.max(1)
        total = np.abs(top + np.log(np.exp(rows - top[:, None]).sum(1)))
        if (total <= slack * np.abs(rows).max(1)).all():
            return "log-probabilities"
    return "never negative" if is_positive else "any"


def _hard_images(output: PendingOutput, rows: Array, found: Reading) -> tuple[HardImage, ...]:
    """The images with the highest loss, highest first; none without labels and losses."""
    if output.hardest is None or output.images is None:
        return ()
    if found.labels is None or found.losses is None:
        return ()
    place = {int(row): number for number, row in enumerate(found.rows)}
    predicted = predictions(rows)[found.rows]
    samples = found.rows * output.steps[0]
    images = in_float64(output.images).astype(np.float32)
    chosen = [place[row] for row in output.hardest.tolist() if row in place]
    kept = [
        HardImage(
            image,
            int(samples[number]),
            int(found.labels[number]),
            int(predicted[number]),
            float(found.losses[number]),
        )
        for number, image in zip(chosen, images, strict=False)
    ]
    return tuple(sorted(kept, key=lambda image: -image.loss))
