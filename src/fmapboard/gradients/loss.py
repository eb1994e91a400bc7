"""The loss, the labels and the loss per row, read from an output and its gradient; on the worker.

The gradient of most losses at a row of outputs is a factor times (probabilities - target), so that
output and gradient together tell the target. A loss is accepted only if the gradient of every row
is explained within the rounding error of the arithmetic (see ``rounding``), and if another loss
whose gradients have the same direction would have shown: hinge, focal, dice, generalized
cross-entropy, Brier, a policy gradient have a factor that depends on the probability of the label.
The factor must be the same in all rows, and the probabilities must differ by so much that a factor
which depends on them would not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from fmapboard.formats.training_facts import LossKind
from fmapboard.gradients.rounding import (
    FLOAT32,
    MOST,
    SHOWS,
    Array,
    Dtypes,
    Factors,
    Labels,
    Mask,
    Rows,
    are_equal,
    fits,
    in_float64,
    is_independent,
    log_softmax_by_torch,
)

LEAST_ROWS = 8
"""With fewer rows that have a gradient, nothing is read."""
_MOST_LABEL = 1000
"""Largest label of BCE that is looked for."""
_SURE = 16.0
"""Difference of two logits beyond which a gradient may be too small for its number format."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the rows of an output and of its gradient show.

    Attributes:
        kind: as in ``OutputFacts``.
        rows: indices of the rows with a gradient, [R].
        labels: of these rows, [R]; of one unit 0 or 1. None without one hard label per row.
        losses: of these rows, without weights, [R]; None if they are not known.
        targets: of these rows, [R, C], where they are no hard labels; None otherwise.
        is_climbed: the gradient is that of the loss times -1.
        scale: gradient of what ``backward`` was called on by the loss of a row; None if it is not
            known, or differs between the rows.
    """

    kind: str = "not certain"
    rows: Labels = field(default_factory=lambda: np.zeros(0, np.intp))
    labels: Labels | None = None
    losses: Array | None = None
    targets: Array | None = None
    is_climbed: bool = False
    scale: float | None = None


NOTHING = Reading()


def read(output: Tensor, gradient: Tensor) -> Reading:
    """Find the loss whose gradient this is.

    Args:
        output: [R, C] on the CPU, floating point, all finite.
        gradient: [R, C].
    """
    dtypes = Dtypes(output.dtype, gradient.dtype)
    return read_rows(in_float64(output), in_float64(gradient), dtypes)


def read_rows(output: Array, gradient: Array, dtypes: Dtypes) -> Reading:
    """Find the loss whose gradient this is.

    Args:
        output: [R, C], all finite.
        gradient: [R, C].
        dtypes: of both, before they were converted.
    """
    rows = rows_with_gradient(gradient)
    if len(rows) < LEAST_ROWS or not np.isfinite(gradient).all():
        return NOTHING
    # Of rows without a gradient, a loss near 0 and one that is not counted look the same.
    others = np.delete(output, rows, 0)
    ranked = np.sort(others, 1)
    ahead = np.diff(ranked[:, -2:])
    if (ahead > _SURE).any():
        return NOTHING
    output = output[rows]
    gradient = gradient[rows]
    with np.errstate(all="ignore"):
        for found in _readings(output, gradient, dtypes):
            if found.losses is not None or found.labels is not None:
                return replace(found, rows=rows)
        for found in _readings(output, -gradient, dtypes):
            if found.losses is not None:
                return replace(found, rows=rows, is_climbed=True)
    return NOTHING


def rows_with_gradient(gradient: Array) -> Labels:
    """Indices [R] of the rows of [N, C] that are not all 0."""
    has_gradient = (gradient != 0).any(1)
    return np.flatnonzero(has_gradient)


def _readings(output: Array, gradient: Array, dtypes: Dtypes) -> Iterator[Reading]:
    """Every way in which the gradient can be read; those without labels or losses are none."""
    kinds = (_log_probabilities, _softmax, _sigmoid, _softmax_twice)
    with_labels = NOTHING
    for rows in _ways_of_rounding(output, gradient, dtypes):
        with_labels = NOTHING
        for kind in kinds:
            found = kind(rows)
            if found.losses is not None:
                yield found
            elif found.labels is not None:
                with_labels = found
    yield with_labels


def _ways_of_rounding(output: Array, gradient: Array, dtypes: Dtypes) -> Iterator[Rows]:
    """The rows with probabilities in float32 and, if the output is coarser, in its dtype."""
    exact = Rows(output, gradient, dtypes)
    yield exact
    if exact.coarse <= FLOAT32:
        return
    rounded = exact.rounded(exact.logp)
    yield Rows(output, gradient, dtypes, logp=rounded)
    by_torch = log_softmax_by_torch(output, dtypes.output)
    yield Rows(output, gradient, dtypes, logp=by_torch)


def _softmax(rows: Rows) -> Reading:
    """Cross-entropy: a factor times (softmax - target)."""
    if rows.classes < 2:
        return NOTHING
    gradient = rows.gradient
    probability = rows.probability
    order = np.where(gradient == 0, -probability, gradient)
    labels = order.argmin(1)
    hot = rows.one_hot(labels)
    rest = 1 - hot
    # One minus the label's probability, without cancellation.
    distance = (probability * rest).sum(1)
    rough = (gradient * rest).sum(1) / distance  # [R]
    factor = rough[:, None]  # [R, 1]
    noise = rows.noise(factor, hot)
    errors = gradient - factor * (probability - hot)
    is_falling = (rough > 0).all()
    if is_falling and fits(errors, noise):
        return _hard(rows, labels, distance, noise)
    if rows.classes <= 3:  # with few classes it explains too much
        return NOTHING
    return _soft(rows)


def _hard(rows: Rows, labels: Labels, distance: Array, noise: Array) -> Reading:
    """Cross-entropy with hard labels, or weighted per sample."""
    rest = 1 - rows.one_hot(labels)
    # Of two classes every gradient has this direction; of equal probabilities, that of hinge too.
    has_several = rows.classes > 2
    if has_several and not rows.show_probabilities(noise, rest > 0):
        return NOTHING
    ratio = rows.gradient / rows.probability
    weight = (rows.probability / noise) ** 2 * rest
    total_weight = weight.sum(1)
    scale = (weight * ratio).sum(1) / total_weight
    error_of_mean = 1 / np.sqrt(total_weight) / scale
    error_of_softmax = rows.unit * (2 - rows.logp.mean(1))
    factors = Factors(scale, error_of_mean + error_of_softmax)
    losses = -rows.at(labels, rows.logp)
    found = Reading("cross-entropy", labels=labels, losses=losses)
    found = _by_factor(found, factors, labels, losses, distance)
    if found.losses is None and not has_several:
        return NOTHING
    return found


def _by_factor(
    found: Reading, factors: Factors, labels: Labels, losses: Array, distance: Array
) -> Reading:
    """The loss by what the factor depends on; nothing if that does not show.

    Args:
        found: the loss, if the factor is the same in all rows.
        factors: [R].
        labels: [R].
        losses: [R].
        distance: one minus the probability of the label, [R].
    """
    one_group = np.zeros_like(labels)
    groups = one_group
    if not are_equal(factors, one_group):
        _, groups, counts = np.unique(labels, return_inverse=True, return_counts=True)
        shared = counts[counts > 1].sum()
        if shared < len(labels) / 2 or not are_equal(factors, groups):
            linear = factors._replace(values=factors.values * np.exp(losses))
            kind = "weighted per sample"
            if found.kind == "cross-entropy" and are_equal(linear, one_group):
                kind = LossKind.NLL_OF_PROBABILITIES
            return Reading(kind, labels=labels)
        found = replace(found, kind=f"{found.kind}, class weights")
    else:
        found = replace(found, scale=float(np.median(factors.values)))
    near = np.log(distance)
    far = -losses
    usual_error = np.median(factors.errors)
    if far.std() < SHOWS * usual_error:
        return NOTHING
    if not is_independent(factors, groups, far):
        return NOTHING
    if not is_independent(factors, groups, near + far):
        return NOTHING
    if is_independent(factors, groups, near) or np.ptp(near) < usual_error:
        return found
    return NOTHING


def _log_probabilities(rows: Rows) -> Reading:
    """NLL: the rows are logarithms of probabilities, and only the label has a gradient."""
    output = rows.output
    gradient = rows.gradient
    if rows.classes < 2:
        return NOTHING
    counts = np.count_nonzero(gradient, axis=1)
    if (counts != 1).any() or (gradient.min(1) >= 0).any():
        return NOTHING
    labels = gradient.argmin(1)
    errors = np.full(rows.size, rows.rounding)
    factors = Factors(-rows.at(labels, gradient), errors)
    is_linear = are_equal(factors, np.zeros_like(labels))
    tolerance = MOST * rows.rounding
    deviation = np.abs(output.sum(1) - 1)
    if (output >= 0).all() and (deviation <= tolerance).all():
        if not is_linear:
            return NOTHING
        return Reading(LossKind.NLL_OF_PROBABILITIES, labels=labels)
    total = np.log(np.exp(output).sum(1))
    largest = np.abs(output).max(1)
    if (np.abs(total) > tolerance * largest).any():
        # A score that is maximized: its label is the prediction in every row.
        is_score = (labels == predictions(output)).all()
        if rows.classes < 3 or is_score or not is_linear:
            return NOTHING
        return Reading(LossKind.NLL_OF_LOGITS, labels=labels)
    losses = -rows.at(labels, output)
    distance = -np.expm1(-losses)
    scale = float(np.median(factors.values)) if is_linear else None
    found = Reading("NLL of log-probabilities", labels=labels, losses=losses, scale=scale)
    read_as = _by_factor(found, factors, labels, losses, distance)
    return read_as if read_as.losses is None else found


class _Line(NamedTuple):
    """Gradients as ``scale * (probability - target)``, with one target in most of the classes.

    Attributes:
        scale: the factor.
        floor: the target in all classes but one or two of a row.
        targets: [R, C].
        noise: rounding errors of the gradients, [R, C].
    """

    scale: float
    floor: float
    targets: Array
    noise: Array


def _fitted_line(rows: Rows) -> _Line:
    """The line through the gradients of all classes but the two with the largest targets."""
    probability = rows.probability
    gradient = rows.gradient
    usual = np.median(gradient / probability)
    targets = probability - gradient / usual
    weight = np.ones_like(probability)
    for _ in range(4):
        others = np.ones_like(probability)
        largest = targets.argsort(1)[:, -2:]  # [R, 2]
        np.put_along_axis(others, largest, 0.0, 1)
        share = weight * others
        share /= share.sum()
        mean_probability = (share * probability).sum()
        mean_gradient = (share * gradient).sum()
        along = probability - mean_probability
        across = gradient - mean_gradient
        covariance = (share * along * across).sum()
        variance = (share * along * along).sum()
        scale = float(covariance / variance)
        floor = float(mean_probability - mean_gradient / scale)
        targets = probability - gradient / scale
        noise = rows.noise(abs(scale), np.abs(targets))
        weight = noise**-2.0
    if abs(floor) * scale < MOST * np.median(noise):
        floor = 0.0
        along = share * probability
        covariance = (along * gradient).sum()
        variance = (along * probability).sum()
        scale = float(covariance / variance)
        targets = probability - gradient / scale
    return _Line(scale, floor, targets, noise)


def _soft(rows: Rows) -> Reading:
    """Label smoothing and mixup: the same small target in all classes but one or two.

    In the others the gradients are factor * p - factor * floor: one line for all rows.
    """
    probability = rows.probability
    scale, floor, targets, noise = _fitted_line(rows)
    is_other = np.abs(targets - floor) * scale <= MOST * noise
    targets = np.where(is_other, floor, targets)
    counts = np.count_nonzero(~is_other, axis=1)
    most = int(counts.max())
    if not scale > 0 or most not in (1, 2):
        return NOTHING
    smoothing = floor * rows.classes
    if not 0 <= smoothing < 0.95 or (targets < floor).any():
        return NOTHING
    errors = rows.gradient - scale * (probability - targets)
    noise_of_others = noise[is_other]
    if not fits(errors[is_other], noise_of_others):
        return NOTHING
    missing = (targets.sum(1) - 1) * scale  # the targets of a row sum to 1
    noise_of_row = np.sqrt((noise**2).sum(1))
    noise_of_row += scale * rows.unit * (2 - rows.logp.mean(1))
    if not fits(missing, noise_of_row):
        return NOTHING
    if not rows.show_probabilities(noise, is_other):
        return NOTHING
    # What a power of the probability, as a temperature makes it, would add to the line.
    probability_of_others = probability[is_other]
    spread = np.log(probability_of_others).std()
    bend = np.median(spread**2 / 2 * scale * probability_of_others)
    if floor and bend <= SHOWS / 2 * np.median(noise_of_others):
        return NOTHING
    losses = -(targets * rows.logp).sum(1)
    if most == 1 and floor:
        labels = targets.argmax(1)
        kind = "cross-entropy, smoothing"
        return Reading(kind, labels=labels, losses=losses, targets=targets, scale=scale)
    return Reading("cross-entropy, mixed labels", losses=losses, targets=targets, scale=scale)


def _sigmoid(rows: Rows) -> Reading:
    """BCE with logits: a factor times (sigmoid - target), each output on its own."""
    output = rows.output
    gradient = rows.gradient
    sigmoid = 1 / (1 + np.exp(-output))
    is_saturated = (gradient == 0) & (sigmoid > 0.5)  # no gradient left
    is_one = (gradient < 0) | is_saturated
    wrong = np.where(is_one, -output, output)  # the logit of the other label
    if rows.is_rounded:
        distance = np.abs(rows.rounded(sigmoid) - is_one)
    else:
        distance = 1 / (1 + np.exp(-wrong))  # |sigmoid - target|
    size = np.abs(gradient)
    is_far = distance >= np.median(distance)
    scale = float(np.median(size[is_far] / distance[is_far]))
    if not scale > 0:
        return NOTHING
    noise = scale * rows.unit * (1 + 2 * distance) + rows.own
    if not fits(size - scale * distance, noise):
        beyond = _beyond_1(rows, sigmoid)
        return _below_0(rows, sigmoid) if beyond is NOTHING else beyond
    is_clear = size > MOST * noise
    if is_clear.sum() < LEAST_ROWS:
        return NOTHING
    if not _has_one_factor(size[is_clear], distance[is_clear], noise[is_clear]):
        return NOTHING
    losses = np.logaddexp(0, wrong).mean(1)
    labels: Labels | None = None
    if rows.classes == 1:
        labels = is_one[:, 0].astype(np.intp)
    elif (is_one.sum(1) == 1).all():
        labels = is_one.argmax(1)
    of_row = scale * rows.classes  # a loss is the mean over the units
    targets = is_one.astype(np.float64)
    return Reading("BCE with logits", labels=labels, losses=losses, targets=targets, scale=of_row)


def _has_one_factor(size: Array, distance: Array, noise: Array) -> bool:
    """True if gradients are a factor times (sigmoid - target), which does not depend on either.

    Args:
        size: magnitudes of the gradients, [K].
        distance: |sigmoid - target|, [K].
        noise: rounding errors of the gradients, [K].
    """
    factors = Factors(size / distance, noise / size)
    groups = np.zeros(len(distance), np.intp)
    near = np.log(distance)
    if not is_independent(factors, groups, near):
        return False
    return is_independent(factors, groups, near + np.log1p(-distance))


def _beyond_1(rows: Rows, sigmoid: Array) -> Reading:
    """BCE with whole numbers as labels, some above 1: masks of 0 and 255, or numbers of classes.

    Where all sigmoids are the same, the gradient of an absolute error looks like it, too.
    """
    gradient = rows.gradient
    is_zero: Mask = gradient > 0
    if rows.classes > 1 or is_zero.sum() < LEAST_ROWS // 2:
        return NOTHING
    gradient_at_zero = gradient[is_zero]
    scale = float(np.median(gradient_at_zero / sigmoid[is_zero]))
    nearest = np.round(sigmoid - gradient / scale)
    targets = np.where(is_zero, 0.0, nearest)
    if not 2 <= targets.max() <= _MOST_LABEL:
        return NOTHING
    difference = sigmoid - targets
    noise = scale * rows.unit * (1 + 2 * np.abs(difference))
    noise += 2 * rows.own
    if not fits(gradient - scale * difference, noise):
        return NOTHING
    around = gradient_at_zero - np.median(gradient_at_zero)
    if fits(around, noise[is_zero]):
        return NOTHING
    labels = targets[:, 0].astype(np.intp)
    return Reading(LossKind.BEYOND_1, labels=labels)


def _below_0(rows: Rows, sigmoid: Array) -> Reading:
    """BCE of one unit with labels of -1 and 1: a factor times (sigmoid - target)."""
    gradient = rows.gradient
    is_low: Mask = gradient > 0
    if rows.classes > 1 or min(is_low.sum(), (~is_low).sum()) < LEAST_ROWS // 2:
        return NOTHING
    targets = np.where(is_low, -1.0, 1.0)
    difference = sigmoid - targets
    scale = float(np.median(gradient / difference))
    noise = scale * rows.unit * (1 + 2 * np.abs(difference))
    noise += 2 * rows.own
    if not fits(gradient - scale * difference, noise):
        return NOTHING
    around = gradient[is_low] - np.median(gradient[is_low])
    if fits(around, noise[is_low]):  # where all sigmoids are the same, other losses look like it
        return NOTHING
    labels = targets[:, 0].astype(np.intp)
    return Reading(LossKind.BELOW_0, labels=labels)


def _softmax_twice(rows: Rows) -> Reading:
    """Cross-entropy of probabilities that a softmax has made of the rows.

    The gradient at the probabilities p is a factor times (softmax(p) - target). One that grows
    otherwise with p, such as that of Brier's score, is not explained by it.
    """
    if rows.classes < 3:
        return NOTHING
    ratio = rows.gradient / rows.probability
    labels = ratio.argmin(1)
    hot = rows.one_hot(labels)
    twice = np.exp(rows.probability)
    twice /= twice.sum(1, keepdims=True)
    errors, factors = _behind_softmax(rows, twice - hot)
    if not fits(errors, np.ones(1)) or not (factors.values > 0).all():
        return NOTHING
    others = (rows.probability, np.zeros_like(hot))
    for other in others:
        errors, _ = _behind_softmax(rows, other - hot)
        if not np.sqrt(np.mean(errors**2)) > SHOWS:
            return NOTHING
    right = rows.at(labels, twice)
    losses = -np.log(right)
    found = Reading(LossKind.SOFTMAX_TWICE, labels=labels, losses=losses)
    found = _by_factor(found, factors, labels, losses, 1 - right)
    if found.kind != LossKind.SOFTMAX_TWICE:
        return NOTHING
    return found


def _behind_softmax(rows: Rows, behind: Array) -> tuple[Array, Factors]:
    """How well a factor times the gradient that a softmax passes on explains that of the rows.

    Args:
        rows: they are what the softmax receives.
        behind: gradient at its probabilities, up to a factor per row, [R, C].

    Returns:
        The deviations in rounding errors, [R, C], and the factors, [R].
    """
    probability = rows.probability
    magnitude = np.abs(behind)
    mean = (probability * behind).sum(1, keepdims=True)
    mean_magnitude = (probability * magnitude).sum(1, keepdims=True)
    expected = probability * (behind - mean)
    size = probability * (magnitude + mean_magnitude)
    relative = rows.of_probability + 2 * rows.unit
    weight = size**-2.0
    for _ in range(2):
        covariance = (weight * rows.gradient * expected).sum(1)
        variance = (weight * expected**2).sum(1)
        scale = covariance / variance
        scale_of_row = scale[:, None]  # [R, 1]
        noise = np.abs(scale_of_row) * size * relative + rows.own
        weight = noise**-2.0
    variance = (weight * expected**2).sum(1)
    error = 1 / np.sqrt(variance) / np.abs(scale) + 4 * rows.unit
    deviations = (rows.gradient - scale_of_row * expected) / noise
    return deviations, Factors(scale, error)


def predictions(rows: Array) -> Labels:
    """[R, C] -> the most probable class of each row, [R]; of one unit 1 if it is positive."""
    if rows.shape[1] > 1:
        labels: Labels = rows.argmax(1)
        return labels
    is_positive = rows[:, 0] > 0
    return is_positive.astype(np.intp)
