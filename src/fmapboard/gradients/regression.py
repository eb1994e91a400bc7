"""What the gradients of an unknown loss tell; a file of its own, as checks of regression need it.

How they pull the outputs: beyond an end of their range, to one value, apart, or all to one side.
"""

from __future__ import annotations

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
    found = 0.0
    if np.ptp(values) < _PULLS * np.abs(values).max():
        return found  # all are nearly the same
    for sign in (1, -1):
        signed = sign * values
        pull = sign * gradient
        is_end = signed <= signed.min() + _END * np.ptp(values)
        count = np.fmax(is_end.sum(1, keepdims=True), 1)
        mean = (pull * is_end).sum(1, keepdims=True) / count
        deviations = (pull - mean) * is_end
        scatter = np.sqrt((deviations**2).sum() / is_end.sum())
        size = pull[is_end].mean()
        if size >= _PULLS * strong and scatter >= _PULLS * size:
            found = max(found, float(is_end.mean()))
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
    slope = float(np.mean((values - mean) * gradient)) / max(spread**2, _TINY)
    away = float(gradient.mean()) / slope if slope > 0 else 0.0
    errors = gradient - slope * (values - mean + away)
    is_line = np.abs(errors).max() < 1e-3 * slope * spread
    is_beside_mean = _END < abs(away) / spread < _FAR
    return float(mean - away) if is_line and is_beside_mean else None


def are_pulled_apart(values: Array, gradient: Array) -> bool:
    """True if the loss makes some outputs of one unit larger, others smaller.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    least = min((gradient > 0).mean(), (gradient < 0).mean())
    return values[0].size == 1 and bool(least >= _PULLS)


def distance_away(values: Array, gradient: Array, size: int) -> float:
    """Distance of the targets from the outputs, in units of the largest output; 0 for others.

    Where the gradient rises with the output, as that of a critic, there is but one target.

    Args:
        values: [n, C, ...].
        gradient: the same.
        size: number of values of the whole output.
    """
    largest = np.abs(values).max()
    strongest = np.abs(gradient).max()
    is_mixed = np.abs(np.sign(gradient).sum()) < _ONE_SIDE * gradient.size
    if is_mixed or np.ptp(gradient) < _END * strongest or not np.ptp(values):
        return 0.0
    if np.corrcoef(values.ravel(), gradient.ravel())[0, 1] > 0.7:
        return 0.0
    return float(size * np.abs(gradient).mean() / 2 / largest)
