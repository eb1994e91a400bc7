"""What the gradients of an unknown loss tell; a file of its own, as checks of regression need it.

How they pull the outputs: beyond an end of their range, to one value, apart, or all to one side.
With the value of the loss, whether it is a squared error, and of which targets.
"""

from __future__ import annotations

import itertools
from math import isclose, prod, sqrt
from typing import NamedTuple

import numpy as np

from fmapboard.gradients.loss import LEAST_ROWS
from fmapboard.gradients.rounding import Array

_TINY = 1e-30
_FAR = 30.0
"""Standard deviations from a value beyond which each gradient grows nearly linearly with it."""
_END = 0.01
"""Share of its range within which an output is at an end of it."""
_PULLS = 0.2
"""Of the largest gradients, from which one pulls; of its mean, from which a pull varies; of the
images, from which their outputs are pulled apart."""
_ONE_SIDE = 0.9
"""Difference of the shares of outputs that are pulled up and down, from which it is one way."""
_NOISE = 10.0
"""Size of targets in units of their rounding errors, from which they are known."""
_EQUAL = 1e-4
"""Relative error of the factor of a squared error."""


class SquaredError(NamedTuple):
    """A squared error: ``factor`` times the mean of ``(output - target) ** 2``.

    Attributes:
        targets: as large as the output.
        factor: 1 for a mean, the number of values for a sum, half of it with a factor of 0.5.
    """

    targets: Array
    factor: float


def squared_error(
    values: Array, gradient: Array, loss: float, rounding: float
) -> SquaredError | None:
    """The squared error that has this value and this gradient; None for other losses.

    The gradient of ``s * sum((values - targets) ** 2)`` is ``2 * s * (values - targets)``, and the
    sum of its squares is ``4 * s * loss``. So value and gradient tell s, which must be that of a
    mean or a sum over some of the axes, with or without a half. An absolute error has it by chance
    only, and its gradients are all of one size.

    Args:
        values: the whole output, [N, ...].
        gradient: the same, of the loss.
        loss: its value.
        rounding: largest relative rounding error of a gradient.
    """
    size = np.abs(gradient)
    if values.size < LEAST_ROWS or not np.isfinite(loss) or not np.isfinite(size).all():
        return None
    if not loss > 0 or np.ptp(size) < _END * size.max():
        return None
    scale = float((size**2).sum()) / (4 * loss)
    factor = scale * values.size
    tolerance = _EQUAL + 8 * rounding / sqrt(values.size)
    if not any(isclose(factor, own, rel_tol=tolerance) for own in _factors(values.shape)):
        return None
    targets = values - gradient / (2 * scale)
    noise = rounding * np.abs(values).max()
    if np.sqrt(np.mean(targets**2)) < _NOISE * noise:  # lost in the rounding of large outputs
        return None
    return SquaredError(targets, factor)


def _factors(shape: tuple[int, ...]) -> set[float]:
    """Factors of a mean that is a sum over some of the axes, with or without a half."""
    found = set[float]()
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(shape, count):
            found |= {float(prod(axes)), prod(axes) / 2}
    return found


def share_pulled(values: Array, gradient: Array) -> float:
    """Share of the values at one end of their range that the loss pulls beyond it, 0 to 1.

    Only if the pull is strong and not that of right answers: that is next to 0, as for a square, or
    the same for all values of a map or unit, as for BCE of probabilities and Dice.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    if values.ndim > 2:
        positions = values[0, 0].size
        values = values.reshape(-1, positions)  # [n*C, positions]
        gradient = gradient.reshape(-1, positions)
    else:
        values = values.T  # [C, n]
        gradient = gradient.T
    strong = np.quantile(np.abs(gradient), 0.99)
    spread = np.ptp(values)
    found = 0.0
    if spread < _PULLS * np.abs(values).max():
        return found  # all are nearly the same
    for sign in (1, -1):
        signed = sign * values
        pull = sign * gradient
        is_end = signed <= signed.min() + _END * spread
        count = is_end.sum(1, keepdims=True)
        total = (pull * is_end).sum(1, keepdims=True)
        mean = total / np.fmax(count, 1)
        deviations = (pull - mean) * is_end
        variance = (deviations**2).sum() / is_end.sum()
        size = pull[is_end].mean()
        is_strong = size >= _PULLS * strong
        if is_strong and np.sqrt(variance) >= _PULLS * size:
            share = float(is_end.mean())
            found = max(found, share)
    return found


def common_target(values: Array, gradient: Array) -> float | None:
    """The value that all outputs of one unit are pulled to, each by its distance from it.

    None for other gradients, and for the mean of the outputs, as of a loss on their variance.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    if values[0].size > 1 or len(values) < LEAST_ROWS:
        return None
    values = values.ravel()
    gradient = gradient.ravel()
    mean = values.mean()
    spread = values.std()
    covariance = float(np.mean((values - mean) * gradient))
    slope = covariance / max(spread**2, _TINY)
    if not slope > 0:
        return None
    away = float(gradient.mean()) / slope
    errors = gradient - slope * (values - mean + away)
    is_line = np.abs(errors).max() < 1e-3 * slope * spread
    is_beside_mean = _END < abs(away) / spread < _FAR
    if is_line and is_beside_mean:
        return float(mean - away)
    return None


def are_pulled_apart(values: Array, gradient: Array) -> bool:
    """True if the loss makes some outputs of one unit larger, others smaller.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    if values[0].size > 1:
        return False
    share_down = float((gradient > 0).mean())
    share_up = float((gradient < 0).mean())
    return min(share_down, share_up) >= _PULLS


def distance_away(values: Array, gradient: Array, size: int) -> float:
    """Distance of the targets from the outputs, in units of the largest output; 0 for others.

    Where the gradient rises with the output, as that of a critic, there is but one target.

    Args:
        values: [n, C, ...].
        gradient: the same.
        size: number of values of the whole output.
    """
    magnitude = np.abs(gradient)
    balance = np.abs(np.sign(gradient).sum())
    if balance < _ONE_SIDE * gradient.size:
        return 0.0
    if np.ptp(gradient) < _END * magnitude.max() or not np.ptp(values):
        return 0.0
    correlations = np.corrcoef(values.ravel(), gradient.ravel())  # [2, 2]
    if correlations[0, 1] > 0.7:
        return 0.0
    largest = np.abs(values).max()
    return float(size * magnitude.mean() / 2 / largest)
