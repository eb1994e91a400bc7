"""Rows of outputs and of their gradients, with the rounding errors to be expected of them.

An entry of a gradient is factor * (probability - target). Softmax or sigmoid were computed in
float32, or in the output's own dtype, with a relative error of a few units times the logarithm; the
result was rounded to the gradient's dtype. No entry may be off by more than `MOST` such errors, and
all together, as a root of the mean square, by not more than `_TYPICAL`: many small deviations of
the same size are another loss, such as one with a temperature of 1.01.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

FLOAT32 = 2.0**-24
"""Relative rounding error of float32."""
MOST = 8.0
"""How many rounding errors an entry may be off."""
_TYPICAL = 1.0
"""How many of them all entries may be off as a root mean square."""
SHOWS = 20.0
"""Another loss must differ by this many rounding errors."""
_LEAST_SCATTER = 0.25
"""Rounding errors of a row are not independent: their scatter may show less than there are."""
_FLATTEST = 0.1
"""A factor that depends on the probability has at least the slope 1/2 in logarithms."""
_UNSHARED = 32_768
"""Of at most this many values torch computes without other threads."""


class Dtypes(NamedTuple):
    """Those of an output and of its gradient, before they were converted."""

    output: torch.dtype
    gradient: torch.dtype


class Factors(NamedTuple):
    """The factors by which the gradients of rows are larger than (probability - target).

    Attributes:
        values: [R].
        errors: their relative rounding errors, [R].
    """

    values: Array
    errors: Array


def in_float64(tensor: Tensor) -> Array:
    """A copy in float64, made without torch's threads: it would start a team in this thread."""
    if tensor.dtype == torch.bfloat16:
        bits = tensor.view(torch.int16).numpy().astype(np.int32) << 16
        return bits.view(np.float32).astype(np.float64)
    return tensor.numpy().astype(np.float64)


def log_softmax_by_torch(output: Array, dtype: torch.dtype) -> Array:
    """Logarithms of probabilities, rounded more than once; row by row, to start no team.

    Args:
        output: [R, C].
        dtype: in which torch computes them.
    """
    classes = output.shape[1]
    row = torch.empty(1, classes, dtype=dtype)
    count = ceil_div(classes, _UNSHARED)
    parts = row[0].chunk(count)
    logs = []
    for values in torch.from_numpy(np.ascontiguousarray(output)):
        for part, own in zip(parts, values.chunk(count), strict=True):
            part.copy_(own)
        log_probabilities = row.log_softmax(1)
        logs.append(in_float64(log_probabilities))
    return np.concatenate(logs)


class Rows:
    """Rows of outputs and gradients, with their rounding errors.

    Args:
        output: [R, C].
        gradient: [R, C].
        dtypes: of both.
        logp: logarithms of the probabilities in the output's dtype, [R, C]; None if they were
            computed in float32 or wider.

    Attributes:
        size: number of rows.
        classes: number of entries of a row.
        unit: relative rounding error of probabilities.
        coarse: relative rounding error of the output's dtype.
        rounding: relative rounding error of the gradient.
        is_rounded: the probabilities were computed in the output's dtype.
        own: rounding errors of the gradient itself, [R, C].
        logp: logarithms of the probabilities, [R, C].
        of_probability: relative rounding errors of the probabilities, [R, C].
        probability: softmax of the output, [R, C].
    """

    def __init__(
        self, output: Array, gradient: Array, dtypes: Dtypes, *, logp: Array | None = None
    ) -> None:
        of_output = torch.finfo(dtypes.output)
        of_gradient = torch.finfo(dtypes.gradient)
        self.output = output
        self.gradient = gradient
        self.size, self.classes = output.shape
        self.coarse = of_output.eps / 2
        self.rounding = of_gradient.eps / 2
        self.unit = min(FLOAT32, self.coarse)
        self.is_rounded = logp is not None
        smallest = of_gradient.tiny
        # Only float16 is expected to have subnormal numbers: elsewhere they may be flushed to 0.
        if dtypes.gradient == torch.float16:
            smallest *= of_gradient.eps
        self.own = self.rounding * np.abs(gradient) + smallest
        below_top = output - output.max(1, keepdims=True)
        total = np.exp(below_top).sum(1, keepdims=True)
        exact = below_top - np.log(total)
        self.logp = exact
        self.of_probability = self.unit * (2 - exact)
        if logp is not None:
            self.logp = logp
            error = 8 * self.unit
            low = self.rounded(exact * (1 - error))
            high = self.rounded(exact * (1 + error))
            # Where the logarithm may be rounded either way.
            self.of_probability += np.abs(low - high)
        self.probability = np.exp(self.logp)

    def rounded(self, values: Array) -> Array:
        """The values with as many bits as the output's dtype has."""
        fraction, exponent = np.frexp(values)
        units = np.round(fraction / self.coarse)
        return np.ldexp(units * self.coarse, exponent)

    def noise(self, scale: Array | float, targets: Array) -> Array:
        """Rounding errors of gradients ``scale * (probability - targets)``, [R, C]."""
        of_difference = self.probability * self.of_probability + self.unit * targets
        return np.asarray(scale * of_difference + self.own)

    def one_hot(self, labels: Labels) -> Array:
        """[R] -> [R, C]."""
        hot = np.zeros((self.size, self.classes))
        numbers = np.arange(self.size)
        hot[numbers, labels] = 1.0
        return hot

    def at(self, labels: Labels, values: Array) -> Array:
        """The values [R, C] at the labels, [R]."""
        numbers = np.arange(self.size)
        return values[numbers, labels]

    def show_probabilities(self, noise: Array, where: Mask) -> bool:
        """True if the probabilities of a row differ by much more than rounding errors.

        Args:
            noise: rounding errors of the gradients, [R, C].
            where: the entries that count, [R, C].
        """
        size = np.fmax(np.abs(self.gradient), noise)
        where = where & (size > noise)  # of large logits, the others are rounded to 0
        count = np.fmax(where.sum(1), 1)
        logs = np.where(where, self.logp, 0.0)
        mean = logs.sum(1) / count
        deviations = np.where(where, self.logp - mean[:, None], 0.0)
        variance = (deviations**2).sum(1) / count
        errors = np.where(where, noise / size, 0.0)
        usual_spread = np.median(np.sqrt(variance))
        usual_error = np.median(errors.sum(1) / count)
        return bool(usual_spread > SHOWS * usual_error)


def fits(difference: Array, noise: Array) -> bool:
    """True if differences are rounding errors."""
    errors = np.abs(difference) / noise
    root_mean_square = np.sqrt(np.mean(errors**2))
    return bool(errors.max() <= MOST and root_mean_square <= _TYPICAL)


def are_equal(factors: Factors, groups: Labels) -> bool:
    """True if the factors of a group of rows are equal within their rounding errors."""
    weights = factors.errors**-2.0
    deviations = _centred(np.log(factors.values), weights, groups)
    return fits(deviations, factors.errors)


def _centred(values: Array, weights: Array, groups: Labels) -> Array:
    """The values without the weighted mean of their group."""
    totals = np.bincount(groups, weights * values)
    means = totals / np.bincount(groups, weights)
    return values - means[groups]


def is_independent(factors: Factors, groups: Labels, number: Array) -> bool:
    """True if a factor would show that it depends on a number, and does not depend on it.

    Args:
        factors: [R].
        groups: those within which rows are compared, [R].
        number: of each row, [R].
    """
    weights = factors.errors**-2.0
    numbers = _centred(number, weights, groups)
    logs = _centred(np.log(factors.values), weights, groups)
    square = (weights * numbers * numbers).sum()
    slope = (weights * numbers * logs).sum() / square
    squared_errors = weights * (logs - slope * numbers) ** 2
    scatter = np.sqrt(np.mean(squared_errors))  # in rounding errors
    expected_scatter = min(1.0, max(_LEAST_SCATTER, 2 * scatter))
    deviation = expected_scatter / np.sqrt(square)  # of the slope
    if not deviation < 1 / SHOWS:
        return False
    return bool(abs(slope) < max(_FLATTEST, 4 * deviation))
