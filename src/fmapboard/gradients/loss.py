"""The loss, the labels and the loss per row, read from an output and its gradient; on the worker.

The gradient of most losses at a row of outputs is a factor times (probabilities - target), so that
output and gradient together tell the target. A loss is accepted only if the gradient of every row
is explained within the rounding error of the arithmetic, and if another loss whose gradients have
the same direction would have shown.

**Rounding.** An entry is factor * (p - t). Softmax or sigmoid were computed in float32, or in the
output's own dtype, with a relative error of a few units times the logarithm; the result was rounded
to the gradient's dtype. No entry may be off by more than `_MOST` such errors, and all together, as
a root of the mean square, by not more than `_TYPICAL`: many small deviations of the same size are
another loss, such as one with a temperature of 1.01.

**Other losses of the same direction** (hinge, focal, dice, generalized cross-entropy, Brier, a
policy gradient) have a factor that depends on the probability of the label. The factor must be the
same in all rows, and the probabilities must differ by so much that a factor which depends on them
would not be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.formats.training_facts import MAX_NAMES, LossKind, OutputFacts
from fmapboard.records import HardImage

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Dtypes = tuple[torch.dtype, torch.dtype]
"""Those of an output and of its gradient."""

MAX_ROWS = 4096
"""At most this many rows of an output are read."""
LEAST_ROWS = 8
"""With fewer rows that have a gradient, nothing is read."""
_MOST, _TYPICAL = 8.0, 1.0
"""How many rounding errors an entry may be off, and all entries as a root mean square."""
_SHOWS = 20.0
"""Another loss must differ by this many rounding errors."""
_UNSHARED = 32_768
"""Of at most this many values torch computes without other threads."""
_FLOAT32 = 2.0**-24
_LEAST_SCATTER = 0.25
"""Rounding errors of a row are not independent: their scatter may show less than there are."""
_FLATTEST = 0.1
"""A factor that depends on the probability has at least the slope 1/2 in logarithms."""
_TINY, _MOST_LABEL = 1e-30, 1000
_FAR = 30.0
"""Standard deviations from a value beyond which each gradient grows nearly linearly with it."""
_END = 0.01
"""Share of its range within which an output is at an end of it."""
_PULLS = 0.2
"""Of the largest gradients, from which one pulls; of its mean, from which a pull varies; of the
images, from which their outputs are pulled apart."""
_ONE_SIDE = 0.9
"""Difference of the shares of outputs that are pulled up and down, from which it is one way."""
_SURE = 16.0
"""Difference of two logits beyond which a gradient may be too small for its number format."""


@dataclass(frozen=True, slots=True)
class PendingOutput:
    """An output of the network in the training pass and its gradient, copies of evenly spaced rows.

    Attributes:
        name: as in ``OutputFacts``.
        shape: of the whole output.
        steps: step along each of its axes.
        values: [n, C, ...].
        gradient: [n, C, ...]; None if none has arrived, or not that of all backward passes.
        hardest: [k], positions in ``values`` of the images with the highest loss; or None.
        images: [k, C, H, W], these images, subsampled.
    """

    name: str
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    values: Tensor
    gradient: Tensor | None = None
    hardest: Tensor | None = None
    images: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What the rows of an output and of its gradient show.

    Attributes:
        kind: as in ``OutputFacts``.
        rows: indices of the rows with a gradient, [R].
        labels: of these rows, [R]; of one unit 0 or 1. None without one hard label per row.
        losses: of these rows, without weights, [R]; None if they are not known.
        is_climbed: the gradient is that of the loss times -1.
    """

    kind: str = "not certain"
    rows: Labels = field(default_factory=lambda: np.zeros(0, np.intp))
    labels: Labels | None = None
    losses: Array | None = None
    is_climbed: bool = False


NOTHING = Reading()


def read(output: Tensor, gradient: Tensor) -> Reading:
    """Find the loss whose gradient this is.

    Args:
        output: [R, C] on the CPU, floating point, all finite.
        gradient: [R, C].
    """
    return _read(in_float64(output), in_float64(gradient), (output.dtype, gradient.dtype))


def in_float64(tensor: Tensor) -> Array:
    """A copy in float64, made without torch's threads: it would start a team in this thread."""
    if tensor.dtype == torch.bfloat16:
        bits = tensor.view(torch.int16).numpy().astype(np.int32) << 16
        return bits.view(np.float32).astype(np.float64)
    return tensor.numpy().astype(np.float64)


def _read(output: Array, gradient: Array, dtypes: Dtypes) -> Reading:
    """As ``read``, with what the output and its gradient were."""
    rows = (gradient != 0).any(1).nonzero()[0]
    ahead = np.diff(np.sort(np.delete(output, rows, 0), 1)[:, -2:])
    # Of rows without a gradient, a loss near 0 and one that is not counted look the same.
    if len(rows) < LEAST_ROWS or not np.isfinite(gradient).all() or (ahead > _SURE).any():
        return NOTHING
    output, gradient = output[rows], gradient[rows]
    with np.errstate(all="ignore"):
        for sign in (1.0, -1.0):
            for found in _readings(output, gradient * sign, dtypes):
                if found.losses is not None or (found.labels is not None and sign > 0):
                    return replace(found, rows=rows, is_climbed=sign < 0)
    return NOTHING


def _readings(output: Array, gradient: Array, dtypes: Dtypes) -> Iterator[Reading]:
    """Every way in which the gradient can be read; those without labels or losses are none."""
    weighted, exact = NOTHING, _Rows(output, gradient, dtypes)
    logs: list[Callable[[], Array]] = []
    if exact.coarse > _FLOAT32:
        logs = [lambda: exact.rounded(exact.logp), lambda: _rounded_by_torch(output, dtypes[0])]
    for logp in (None, *logs):
        rows = exact if logp is None else _Rows(output, gradient, dtypes, logp=logp())
        weighted = NOTHING
        for kind in (_log_probabilities, _softmax, _sigmoid, _softmax_twice):
            found = kind(rows)
            if found.losses is not None:
                yield found
            elif found.labels is not None:
                weighted = found
    yield weighted


def _rounded_by_torch(output: Array, dtype: torch.dtype) -> Array:
    """Logarithms of probabilities, rounded more than once; row by row, to start no team."""
    row, logs = torch.empty(1, output.shape[1], dtype=dtype), []
    count = -(-output.shape[1] // _UNSHARED)
    for values in torch.from_numpy(np.ascontiguousarray(output)):
        for part, given in zip(row[0].chunk(count), values.chunk(count), strict=True):
            part.copy_(given)
        logs.append(in_float64(row.log_softmax(1)))
    return np.concatenate(logs)


class _Rows:
    """Rows of outputs and gradients, with their rounding errors.

    Args:
        output: [R, C].
        gradient: [R, C].
        dtypes: of both before they were converted.
        logp: logarithms of the probabilities in the output's dtype, [R, C]; None if they were
            computed in float32 or wider.

    Attributes:
        unit: relative rounding error of probabilities.
        coarse: relative rounding error of the output's dtype.
        rounding: relative rounding error of the gradient.
    """

    def __init__(
        self, output: Array, gradient: Array, dtypes: Dtypes, *, logp: Array | None = None
    ) -> None:
        of_output, of_gradient = map(torch.finfo, dtypes)
        self.output, self.gradient = output, gradient
        self.size, self.classes = output.shape
        self.coarse, self.rounding = of_output.eps / 2, of_gradient.eps / 2
        self.unit, self.is_rounded = min(_FLOAT32, self.coarse), logp is not None
        # Only float16 is expected to have subnormal numbers: elsewhere they may be flushed to 0.
        is_half = dtypes[1] == torch.float16
        smallest = of_gradient.tiny * (of_gradient.eps if is_half else 1)
        self.own = self.rounding * np.abs(self.gradient) + smallest
        top = self.output.max(1, keepdims=True)
        exact = self.output - top - np.log(np.exp(self.output - top).sum(1, keepdims=True))
        self.logp, self.of_p = exact, self.unit * (2 - exact)  # [R, C]
        if logp is not None:
            self.logp = logp
            ends = [self.rounded(exact * (1 + sign * 8 * self.unit)) for sign in (-1, 1)]
            self.of_p = self.of_p + np.abs(ends[0] - ends[1])  # where it may round either way
        self.p = np.exp(self.logp)

    def rounded(self, values: Array) -> Array:
        """The values with as many bits as the output's dtype has."""
        fraction, exponent = np.frexp(values)
        return np.ldexp(np.round(fraction / self.coarse) * self.coarse, exponent)

    def noise(self, scale: Array | float, targets: Array) -> Array:
        """The rounding errors to be expected of gradients ``scale * (p - targets)``, [R, C]."""
        return np.asarray(scale * (self.p * self.of_p + self.unit * targets) + self.own)

    def one_hot(self, labels: Labels) -> Array:
        """[R] -> [R, C]."""
        hot = np.zeros((self.size, self.classes))
        hot[np.arange(self.size), labels] = 1.0
        return hot

    def of(self, values: Array, labels: Labels) -> Array:
        """The values at the labels, [R]."""
        return values[np.arange(self.size), labels]


def _fits(difference: Array, noise: Array) -> bool:
    """True if differences are rounding errors."""
    errors = np.abs(difference) / noise
    return bool(errors.max() <= _MOST and np.sqrt(np.mean(errors**2)) <= _TYPICAL)


def _softmax(rows: _Rows) -> Reading:
    """Cross-entropy: a factor times (softmax - target)."""
    if rows.classes < 2:
        return NOTHING
    labels = (rows.gradient - (rows.gradient == 0) * rows.p).argmin(1)
    hot = rows.one_hot(labels)
    rest = 1 - hot
    distance = (rows.p * rest).sum(1)  # one minus the label's probability, without cancellation
    rough = (rows.gradient * rest).sum(1) / distance  # [R]
    noise, errors = rows.noise(rough[:, None], hot), rows.gradient - rough[:, None] * (rows.p - hot)
    if (rough > 0).all() and _fits(errors, noise):
        return _hard(rows, labels, distance, noise)
    return _soft(rows) if rows.classes > 3 else NOTHING  # with few classes it explains too much


def _hard(rows: _Rows, labels: Labels, distance: Array, noise: Array) -> Reading:
    """Cross-entropy with hard labels, or weighted per sample."""
    rest = 1 - rows.one_hot(labels)
    # Of two classes every gradient has this direction; of equal probabilities, that of hinge too.
    is_visible = rows.classes > 2 and _is_visible(rows, noise, rest)
    if rows.classes > 2 and not is_visible:
        return NOTHING
    ratio, weight = rows.gradient / rows.p, (rows.p / noise) ** 2 * rest
    scale = (weight * ratio).sum(1) / weight.sum(1)
    error = 1 / np.sqrt(weight.sum(1)) / scale + rows.unit * (2 - rows.logp.mean(1))
    found = Reading("cross-entropy", labels=labels, losses=-rows.of(rows.logp, labels))
    found = _by_scale(found, scale, error, labels, distance)
    return NOTHING if found.losses is None and not is_visible else found


def _is_visible(rows: _Rows, noise: Array, where: npt.NDArray[Any]) -> bool:
    """True if the probabilities of a row differ by much more than rounding errors."""
    size = np.fmax(np.abs(rows.gradient), noise)
    where = where * (size > noise)  # of large logits, the others are rounded to 0
    count = np.fmax(where.sum(1), 1)
    mean = (rows.logp * where).sum(1) / count
    spread = np.sqrt((((rows.logp - mean[:, None]) * where) ** 2).sum(1) / count)
    relative = (noise / size * where).sum(1) / count
    return bool(np.median(spread) > _SHOWS * np.median(relative))


def _by_scale(
    found: Reading, scale: Array, error: Array, labels: Labels, distance: Array
) -> Reading:
    """The loss by what the factor depends on; nothing if that does not show.

    Args:
        found: the loss, if the factor is the same in all rows.
        scale: the factors, [R].
        error: their relative rounding errors, [R].
        labels: [R].
        distance: one minus the probability of the label, [R].
    """
    groups, losses = np.zeros_like(labels), found.losses
    assert losses is not None
    if not _are_equal(scale, error, groups):
        _, groups, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if counts[counts > 1].sum() < len(labels) / 2 or not _are_equal(scale, error, groups):
            linear = scale * np.exp(losses)
            is_linear = found.kind == "cross-entropy" and _are_equal(linear, error, 0 * groups)
            kind = LossKind.NLL_OF_PROBABILITIES if is_linear else "weighted per sample"
            return Reading(kind, labels=labels)
        found = replace(found, kind=f"{found.kind}, class weights")
    near, far = np.log(distance), -losses
    if far.std() < _SHOWS * np.median(error):
        return NOTHING
    visible = [_slope(scale, error, groups, of) for of in (far, near + far, near)]
    is_seen = all(visible[:2]) and (visible[2] or np.ptp(near) < np.median(error))
    return found if is_seen else NOTHING


def _are_equal(scale: Array, error: Array, groups: Labels) -> bool:
    """True if the factors of a group of rows are equal within their rounding errors."""
    logs = np.log(scale)
    return _fits(_centred(logs, error**-2.0, groups), error)


def _centred(values: Array, weights: Array, groups: Labels) -> Array:
    """The values without the weighted mean of their group."""
    means = np.bincount(groups, weights * values) / np.bincount(groups, weights)
    return values - means[groups]


def _slope(scale: Array, error: Array, groups: Labels, of: Array) -> bool:
    """True if the factor would show that it depends on a number, and does not depend on it."""
    weights = error**-2.0
    x, y = (_centred(v, weights, groups) for v in (of, np.log(scale)))
    square = (weights * x * x).sum()
    slope = (weights * x * y).sum() / square
    scatter = np.sqrt(np.mean(weights * (y - slope * x) ** 2))  # in rounding errors
    deviation = min(1.0, max(_LEAST_SCATTER, 2 * scatter)) / np.sqrt(square)
    return bool(deviation < 1 / _SHOWS and abs(slope) < max(_FLATTEST, 4 * deviation))


def _log_probabilities(rows: _Rows) -> Reading:
    """NLL: the rows are logarithms of probabilities, and only the label has a gradient."""
    gradient, most = rows.gradient, _MOST * rows.rounding
    if rows.classes < 2 or ((gradient != 0).sum(1) != 1).any() or (gradient.min(1) >= 0).any():
        return NOTHING
    labels = gradient.argmin(1)
    losses = -rows.of(rows.output, labels)
    scale, error = -rows.of(gradient, labels), np.full(rows.size, rows.rounding)
    if (rows.output >= 0).all() and (np.abs(rows.output.sum(1) - 1) <= most).all():
        is_linear = _are_equal(scale, error, np.zeros_like(labels))
        return Reading(LossKind.NLL_OF_PROBABILITIES, labels=labels) if is_linear else NOTHING
    total = np.log(np.exp(rows.output).sum(1))
    if (np.abs(total) > most * np.abs(rows.output).max(1)).any():
        # A score that is maximized: its label is the prediction in every row.
        is_score = (labels == predictions(rows.output)).all()
        if rows.classes < 3 or is_score:
            return NOTHING
        is_linear = _are_equal(scale, error, np.zeros_like(labels))
        return Reading(LossKind.NLL_OF_LOGITS, labels=labels) if is_linear else NOTHING
    found = Reading("NLL of log-probabilities", labels=labels, losses=losses)
    read_as = _by_scale(found, scale, error, labels, -np.expm1(-losses))
    return found if read_as.losses is not None else read_as


def _soft(rows: _Rows) -> Reading:
    """Label smoothing and mixup: the same small target in all classes but one or two.

    In the others the gradients are factor * p - factor * floor: one line for all rows.
    """
    p, gradient = rows.p, rows.gradient
    targets, weight = p - gradient / np.median(gradient / p), np.ones_like(p)
    for _ in range(4):
        others = np.ones_like(p)
        np.put_along_axis(others, targets.argsort(1)[:, -2:], 0.0, 1)
        w = weight * others / (weight * others).sum()
        x, y = p - (w * p).sum(), gradient - (w * gradient).sum()
        scale = float((w * x * y).sum() / (w * x * x).sum())
        floor = float((w * p).sum() - (w * gradient).sum() / scale)
        targets = p - gradient / scale
        noise = rows.noise(abs(scale), np.abs(targets))
        weight = noise**-2.0
    if abs(floor) * scale < _MOST * np.median(noise):
        floor, scale = 0.0, float((w * p * gradient).sum() / (w * p * p).sum())
        targets = p - gradient / scale
    is_other = np.abs(targets - floor) * scale <= _MOST * noise
    targets = np.where(is_other, floor, targets)
    count = int((~is_other).sum(1).max())
    errors = gradient - scale * (p - targets), (targets.sum(1) - 1) * scale
    if not (scale > 0 and 0 <= floor * rows.classes < 0.95 and 0 < count < 3):
        return NOTHING
    if (targets < floor).any() or not _fits(errors[0][is_other], noise[is_other]):
        return NOTHING
    of_row = np.sqrt((noise**2).sum(1)) + scale * rows.unit * (2 - rows.logp.mean(1))
    if not _fits(errors[1], of_row) or not _is_visible(rows, noise, is_other):
        return NOTHING
    # What a power of p, as a temperature makes it, would add to the line.
    bend = np.median(np.log(p[is_other]).std() ** 2 / 2 * scale * p[is_other])
    if floor and bend <= _SHOWS / 2 * np.median(noise[is_other]):
        return NOTHING
    losses = -(targets * rows.logp).sum(1)
    if count == 1 and floor:
        return Reading("cross-entropy, smoothing", labels=targets.argmax(1), losses=losses)
    return Reading("cross-entropy, mixed labels", losses=losses)


def _sigmoid(rows: _Rows) -> Reading:
    """BCE with logits: a factor times (sigmoid - target), each output on its own."""
    output, gradient = rows.output, rows.gradient
    q = 1 / (1 + np.exp(-output))
    is_one = (gradient < 0) | ((gradient == 0) & (q > 0.5))  # saturated: no gradient left
    distance = 1 / (1 + np.exp(np.where(is_one, output, -output)))  # |q - target|
    if rows.is_rounded:
        distance = np.abs(rows.rounded(q) - is_one)
    far = distance >= np.median(distance)
    scale = float(np.median(np.abs(gradient[far]) / distance[far]))
    if not scale > 0:
        return NOTHING
    noise = scale * rows.unit * (1 + 2 * distance) + rows.own
    if not _fits(np.abs(gradient) - scale * distance, noise):
        return _beyond_1(rows, q)
    clear = np.abs(gradient) > _MOST * noise
    if clear.sum() < LEAST_ROWS:
        return NOTHING
    size, d = np.abs(gradient[clear]), distance[clear]
    groups, near = np.zeros(len(d), np.intp), np.log(d)
    both = near, near + np.log1p(-d)
    if not all(_slope(size / d, noise[clear] / size, groups, of) for of in both):
        return NOTHING
    losses = np.logaddexp(0, np.where(is_one, -output, output)).mean(1)
    if rows.classes == 1:
        return Reading("BCE with logits", labels=is_one[:, 0].astype(np.intp), losses=losses)
    labels = is_one.argmax(1) if (is_one.sum(1) == 1).all() else None
    return Reading("BCE with logits", labels=labels, losses=losses)


def _beyond_1(rows: _Rows, q: Array) -> Reading:
    """BCE with whole numbers as labels, some above 1: masks of 0 and 255, or numbers of classes.

    Where all q are the same, the gradient of an absolute error looks like it, too.
    """
    gradient, is_zero = rows.gradient, rows.gradient > 0
    if rows.classes > 1 or is_zero.sum() < LEAST_ROWS // 2:
        return NOTHING
    scale = float(np.median(gradient[is_zero] / q[is_zero]))
    targets = np.where(is_zero, 0.0, np.round(q - gradient / scale))
    noise = scale * rows.unit * (1 + 2 * np.abs(q - targets)) + 2 * rows.own
    off, flat = gradient - scale * (q - targets), gradient[is_zero] - np.median(gradient[is_zero])
    if 2 <= targets.max() <= _MOST_LABEL and _fits(off, noise) and not _fits(flat, noise[is_zero]):
        return Reading(LossKind.BEYOND_1, labels=targets[:, 0].astype(np.intp))
    return NOTHING


def _softmax_twice(rows: _Rows) -> Reading:
    """Cross-entropy of probabilities that a softmax has made of the rows.

    The gradient at the probabilities p is a factor times (softmax(p) - target). One that grows
    otherwise with p, such as that of Brier's score, is not explained by it.
    """
    if rows.classes < 3:
        return NOTHING
    labels = (rows.gradient / rows.p).argmin(1)
    hot, twice = rows.one_hot(labels), np.exp(rows.p)
    twice /= twice.sum(1, keepdims=True)
    errors, scale, error = _behind_softmax(rows, twice - hot)
    if not (_fits(errors, np.ones(1)) and (scale > 0).all()):
        return NOTHING
    others = [_behind_softmax(rows, given - hot)[0] for given in (rows.p, np.zeros_like(hot))]
    is_visible = all(np.sqrt(np.mean(other**2)) > _SHOWS for other in others)
    if not is_visible:
        return NOTHING
    right = rows.of(twice, labels)
    found = Reading(LossKind.SOFTMAX_TWICE, labels=labels, losses=-np.log(right))
    found = _by_scale(found, scale, error, labels, 1 - right)
    return found if found.kind == LossKind.SOFTMAX_TWICE else NOTHING


def _behind_softmax(rows: _Rows, given: Array) -> tuple[Array, Array, Array]:
    """How well a factor times the gradient that a softmax passes on explains that of the rows.

    Args:
        rows: they are what the softmax receives.
        given: gradient at its probabilities, up to a factor per row, [R, C].

    Returns:
        The deviations in rounding errors, [R, C], the factors, [R], and their relative rounding
        errors, [R].
    """
    expected = rows.p * (given - (rows.p * given).sum(1, keepdims=True))
    size = rows.p * (np.abs(given) + (rows.p * np.abs(given)).sum(1, keepdims=True))
    weight = size**-2.0
    for _ in range(2):
        scale = (weight * rows.gradient * expected).sum(1) / (weight * expected**2).sum(1)
        noise = np.abs(scale)[:, None] * size * (rows.of_p + 2 * rows.unit) + rows.own
        weight = noise**-2.0
    error = 1 / np.sqrt((weight * expected**2).sum(1)) / np.abs(scale) + 4 * rows.unit
    return (rows.gradient - scale[:, None] * expected) / noise, scale, error


def output_facts(output: PendingOutput) -> tuple[OutputFacts, tuple[HardImage, ...]]:
    """What an output and its gradient tell, and the images with the highest loss.

    Args:
        output: on the CPU, with a gradient.
    """
    facts, values, gradient = OutputFacts(output.name, output.shape), output.values, output.gradient
    assert gradient is not None
    if not output.shape:  # the loss itself
        loss = float(values)
        is_climbed = bool(gradient < 0)
        return replace(facts, loss=loss if isfinite(loss) else None, is_climbed=is_climbed), ()
    own, given = in_float64(values), in_float64(gradient).reshape(values.shape)
    own, given = (one if one.ndim > 1 else one[:, None] for one in (own, given))
    is_finite, dtypes = bool(np.isfinite(own).all()), (values.dtype, gradient.dtype)
    finite = own if is_finite else own[np.isfinite(own)]
    if finite.size:
        facts = replace(facts, low=float(finite.min()), high=float(finite.max()))
    read_as = [
        (rows, _read(rows, _rows_of(given, axis), dtypes))
        for axis in ((1, 2) if own.ndim == 3 else (1,))
        if is_finite and (rows := _rows_of(own, axis)) is not None
    ]
    certain = [one for one in read_as if one[1].kind != "not certain"]
    if len(read_as) > 1 and len(certain) != 1:  # the class axis is not known
        read_as = []
    facts = replace(facts, rows=len(own), spread=_spread(own.reshape(len(own), -1)))
    if is_finite and not certain and np.isfinite(given).all():
        facts = replace(facts, pulled=_pulled(own, given), target=_target(own, given))
        apart = own[0].size == 1 and min((given > 0).mean(), (given < 0).mean()) >= _PULLS
        facts = replace(facts, is_pulled_apart=bool(apart))
        facts = replace(facts, away=_away(own, given, prod(output.shape)))
    if not read_as:
        return facts, ()
    rows, found = (certain or read_as)[0]
    slack = max(2 * torch.finfo(values.dtype).eps, 1e-5)
    return _with_reading(facts, rows, found, slack), _hard_images(output, rows, found)


def _rows_of(values: Array, axis: int) -> Array:
    """[n, C, ...] with the classes on an axis -> [R, C]."""
    rows = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    return rows[:: -(-len(rows) // MAX_ROWS)]


def _spread(units: Array) -> float | None:
    """Mean over the units of [n, U] of (standard deviation) / (mean magnitude)."""
    if len(units) < 2 or not np.isfinite(units).all():
        return None
    magnitude = np.abs(units).mean(0)
    return float((units.std(0) / np.where(magnitude > 0, magnitude, 1.0)).mean())


def _pulled(values: Array, gradient: Array) -> float:
    """Share of the values at one end of their range that the loss pulls beyond it, 0 to 1.

    Only if the pull is strong and not that of right answers: that is next to 0, as for a square, or
    the same for all values of a map or unit, as for BCE of probabilities and Dice.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    maps = values.ndim > 2
    values, gradient = (
        one.reshape(-1, one[0, 0].size) if maps else one.T for one in (values, gradient)
    )
    strong, found = np.quantile(np.abs(gradient), 0.99), 0.0
    if np.ptp(values) < _PULLS * np.abs(values).max():
        return found  # all are nearly the same
    for sign in (1, -1):
        low, pull = (sign * values).min(), sign * gradient
        is_end = sign * values <= low + _END * np.ptp(values)
        count = np.fmax(is_end.sum(1, keepdims=True), 1)
        mean = (pull * is_end).sum(1, keepdims=True) / count
        scatter = np.sqrt((((pull - mean) * is_end) ** 2).sum() / is_end.sum())
        size = pull[is_end].mean()
        if size >= _PULLS * strong and scatter >= _PULLS * size:
            found = max(found, float(is_end.mean()))
    return found


def _target(values: Array, gradient: Array) -> float | None:
    """The value that all outputs of one unit are pulled to, each by its distance from it.

    None for other gradients, and for the mean of the outputs, as of a loss on their variance.

    Args:
        values: [n, C, ...].
        gradient: the same.
    """
    if values[0].size > 1 or len(values) < LEAST_ROWS:
        return None
    values, gradient = values.ravel(), gradient.ravel()
    mean, spread = values.mean(), values.std()
    slope = float(np.mean((values - mean) * gradient)) / max(spread**2, _TINY)
    away = float(gradient.mean()) / slope if slope > 0 else 0.0
    errors = gradient - slope * (values - mean + away)
    is_line = np.abs(errors).max() < 1e-3 * slope * spread
    return float(mean - away) if is_line and _END < abs(away) / spread < _FAR else None


def _away(values: Array, gradient: Array, size: int) -> float:
    """Distance of the targets from the outputs, as in ``OutputFacts``.

    Where the gradient rises with the output, as that of a critic, there is but one target.

    Args:
        values: [n, C, ...].
        gradient: the same.
        size: number of values of the whole output.
    """
    largest, strongest = np.abs(values).max(), np.abs(gradient).max()
    is_mixed = np.abs(np.sign(gradient).sum()) < _ONE_SIDE * gradient.size
    if is_mixed or np.ptp(gradient) < _END * strongest or not np.ptp(values):
        return 0.0
    is_function = np.corrcoef(values.ravel(), gradient.ravel())[0, 1] > 0.7
    return 0.0 if is_function else float(size * np.abs(gradient).mean() / 2 / largest)


def _with_reading(facts: OutputFacts, rows: Array, found: Reading, slack: float) -> OutputFacts:
    """The facts with what the rows of the output and their gradients tell."""
    predicted, labels, are = predictions(rows), found.labels, _rows_are(rows, slack)
    is_twice = are == "probabilities" and found.kind.startswith("cross-entropy")
    is_twice |= found.kind == LossKind.SOFTMAX_TWICE
    facts = replace(facts, rows=len(rows), rows_are=are, predictions=len(np.unique(predicted)))
    facts = replace(facts, kind=found.kind, is_climbed=found.is_climbed, classes=rows.shape[1])
    if found.losses is not None:
        facts = replace(facts, loss=float(found.losses.mean()), is_softmax_of_softmax=is_twice)
        if labels is not None:
            facts = replace(facts, accuracy=float((predicted[found.rows] == labels).mean()))
    if labels is not None:
        facts = replace(facts, labels=tuple(Counter(labels.tolist()).most_common(MAX_NAMES)))
        if len(facts.shape) < 3:
            facts = replace(facts, label_changes=int((labels[1:] != labels[:-1]).sum()))
    return facts


def predictions(rows: Array) -> Labels:
    """[R, C] -> the most probable class of each row, [R]; of one unit 1 if it is positive."""
    return rows.argmax(1) if rows.shape[1] > 1 else (rows[:, 0] > 0).astype(np.intp)


def _rows_are(rows: Array, slack: float) -> str:
    """What all rows of [R, C] are, as in ``OutputFacts.rows_are``; sums may be off by slack."""
    is_positive, top = bool((rows >= 0).all()), rows.max(1)
    if rows.shape[1] > 1 and is_positive and (np.abs(rows.sum(1) - 1) <= slack).all():
        return "probabilities"
    total = np.abs(top + np.log(np.exp(rows - top[:, None]).sum(1)))
    if rows.shape[1] > 1 and (total <= slack * np.abs(rows).max(1)).all():
        return "log-probabilities"
    return "never negative" if is_positive else "any"


def _hard_images(output: PendingOutput, rows: Array, found: Reading) -> tuple[HardImage, ...]:
    """The images with the highest loss, highest first; none without labels and losses."""
    if output.hardest is None or output.images is None:
        return ()
    if found.labels is None or found.losses is None:
        return ()
    place = {int(row): n for n, row in enumerate(found.rows)}
    chosen = [place[row] for row in output.hardest.tolist() if row in place]
    samples, predicted = found.rows * output.steps[0], predictions(rows)[found.rows]
    numbers = zip(samples, found.labels, predicted, found.losses, strict=True)
    by_row = [(int(n), int(label), int(got), float(loss)) for n, label, got, loss in numbers]
    images = in_float64(output.images).astype(np.float32)
    kept = [HardImage(image, *by_row[n]) for n, image in zip(chosen, images, strict=False)]
    return tuple(sorted(kept, key=lambda one: -one.loss))
