"""Relative errors between the tensors that two layers received or returned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.capture.passes import Side
from fmapboard.model.tensors import dense, is_observable

_VALUES_AT_ONCE = 2**22
"""Values converted to float64 at a time."""


class Error(NamedTuple):
    """How much some tensors of one model differ from those of another.

    Attributes:
        relative: Norm of the difference divided by the larger of the two norms, from 0 to 2; the
            largest of all tensors. Infinite if they cannot be compared, or differ in where they
            are not finite. None if there is no tensor.
        nonfinite: Number of NaN and infinite values in both models' tensors.
        reason: Why the tensors cannot be compared; else empty.
        has_other_shapes: Their shapes or number differ.
    """

    relative: float | None = None
    nonfinite: tuple[int, int] = (0, 0)
    reason: str = ""
    has_other_shapes: bool = False

    def worst(self, other: Error) -> Error:
        """The errors of several tensors, or of several images, as one."""
        known = [error for error in (self.relative, other.relative) if error is not None]
        first, second = map(sum, zip(self.nonfinite, other.nonfinite, strict=True))
        return Error(
            max(known, default=None),
            (first, second),
            self.reason or other.reason,
            self.has_other_shapes or other.has_other_shapes,
        )


class Errors(dict[tuple[str | None, Side], Error]):
    """Errors by label of a call and by what it received or returned; None is the model's output.

    An error that was not measured is an ``Error()``.
    """

    def __missing__(self, key: tuple[str | None, Side]) -> Error:
        return Error()

    def include(self, other: Errors) -> None:
        """Keep the larger one of each two errors."""
        for key, error in other.items():
            self[key] = self[key].worst(error)


def error_between(expected: Sequence[Tensor], actual: Sequence[Tensor]) -> Error:
    """Compare tensors one by one.

    Integer and boolean tensors are compared as numbers. NaN equals NaN, and an infinity equals one
    of the same sign; the error is that of the other values.

    Args:
        expected: The first model's tensors, of any shape, dtype and device.
        actual: The second model's.
    """
    if len(expected) != len(actual):
        reason = f"{len(expected)} tensors in A, {len(actual)} in B"
        return Error(math.inf, reason=reason, has_other_shapes=True)
    found = Error()
    for first, second in zip(expected, actual, strict=True):
        found = found.worst(_error_of_one(first, second))
    return found


def is_same(received: Sequence[Tensor], returned: Sequence[Tensor]) -> bool:
    """True if there are tensors and none of them differs."""
    return bool(received) and error_between(received, returned).relative == 0.0


def same_bits(first: Tensor, second: Tensor) -> bool:
    """True if two tensors have the same dtype, device, shape and values; NaN equals NaN."""
    if (first.dtype, first.device, first.shape) != (second.dtype, second.device, second.shape):
        return False
    if not first.is_floating_point():
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=0.0, atol=0.0, equal_nan=True)


def _error_of_one(first: Tensor, second: Tensor) -> Error:
    if first.shape != second.shape:
        reason = f"shape {list(first.shape)} in A, {list(second.shape)} in B"
        return Error(math.inf, reason=reason, has_other_shapes=True)
    if first.numel() == 0:
        return Error(0.0)
    if not (is_observable(first) and is_observable(second)):
        return Error()
    squares, counts, matching = [0.0, 0.0, 0.0], [0, 0], True
    one, other = _flat(first), _flat(second)
    for start in range(0, one.numel(), _VALUES_AT_ONCE):
        a, b = (
            # On the CPU: accelerators may lack float64.
            flat[start : start + _VALUES_AT_ONCE].cpu().to(torch.float64)
            for flat in (one, other)
        )
        found = _squares(a, b)
        if not all(map(math.isfinite, found)):
            finite = a.isfinite() & b.isfinite()
            counts[0] += int((~a.isfinite()).sum())
            counts[1] += int((~b.isfinite()).sum())
            same = (a == b) | (a.isnan() & b.isnan())
            matching = matching and bool((finite | same).all())
            found = _squares(a[finite], b[finite])
        squares = [sum(pair) for pair in zip(squares, found, strict=True)]
    difference, norm = math.sqrt(squares[0]), math.sqrt(max(squares[1:]))
    relative = 0.0 if difference == 0.0 else difference / norm
    reason = "" if matching else f"NaN or infinite values: {counts[0]:,} in A, {counts[1]:,} in B"
    return Error(relative if matching else math.inf, (counts[0], counts[1]), reason)


def _squares(first: Tensor, second: Tensor) -> list[float]:
    """Sums of squares of the difference and of both tensors."""
    own, other = (float(torch.dot(values, values)) for values in (first, second))
    if torch.equal(first, second):
        return [0.0, own, other]
    difference = second - first
    return [float(torch.dot(difference, difference)), own, other]


def _flat(tensor: Tensor) -> Tensor:
    tensor = dense(tensor)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)
